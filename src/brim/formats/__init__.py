"""Wire formats: request bodies to messages and back, without loss."""

from brim.formats.arguments import arguments_object
from brim.formats.convert import portable_id
from brim.formats.dialects import DIALECTS, dialect_of, violations
from brim.formats.openai_responses import answered_by_picture, blank_picture
from brim.formats.request import (
    APIS,
    Request,
    parse_message,
    parse_request,
    render_message,
    render_messages,
    render_request,
    render_tool,
)
from brim.formats.thinking import BINDING_BETA, ask_to_drop, binds_thinking, signs_thinking

__all__ = [
    "APIS",
    "BINDING_BETA",
    "DIALECTS",
    "Request",
    "answered_by_picture",
    "arguments_object",
    "ask_to_drop",
    "binds_thinking",
    "blank_picture",
    "dialect_of",
    "parse_message",
    "parse_request",
    "portable_id",
    "render_message",
    "render_messages",
    "render_request",
    "render_tool",
    "signs_thinking",
    "violations",
]
