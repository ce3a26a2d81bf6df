"""Wire formats: request bodies to messages and back, without loss."""

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

__all__ = [
    "APIS",
    "Request",
    "parse_message",
    "parse_request",
    "render_message",
    "render_messages",
    "render_request",
    "render_tool",
]
