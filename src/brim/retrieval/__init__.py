"""What of a workspace a question is about: an index that follows its files, and the snippets that answer best.

`Retriever` is the way in. Nothing here knows of conversations: what becomes of the snippets is the agent's business.
"""

from brim.retrieval.retriever import Found, Retriever, Snippet, render_snippets

__all__ = ["Found", "Retriever", "Snippet", "render_snippets"]
