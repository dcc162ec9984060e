"""What a request to the server is, and which of the two protocol eras it speaks."""

from collections.abc import Callable
from typing import Any

from mcp.server import ServerRequestContext
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from toolcrib.model import Caller

Request = ServerRequestContext[Any, Any]
"""One message of a client, with its session."""

WhoAsks = Callable[[Request], Caller]
"""Finds out who sent a message; asked for each anew, so that none lives on the rights of an earlier one."""

LEGACY, MODERN = LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION


def is_modern(request: Request) -> bool:
    """Whether the request carries its own envelope and belongs to no session."""
    return request.protocol_version in MODERN_PROTOCOL_VERSIONS
