"""Constants of the MCP revisions, in two eras: handshake and modern."""

MODERN = "2026-07-28"
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Older revisions, with an `initialize` handshake and a session."""
LEGACY = HANDSHAKES[-1]
REVISIONS = (*HANDSHAKES, MODERN)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
RESOURCE_NOT_FOUND = -32002
"""Before 2026-07-28, which uses INVALID_PARAMS instead."""

RESERVED = "io.modelcontextprotocol/"
"""Prefix of the protocol's own keys in `_meta`."""
VERSION_KEY = f"{RESERVED}protocolVersion"
CAPABILITIES_KEY = f"{RESERVED}clientCapabilities"
CLIENT_KEY = f"{RESERVED}clientInfo"
LEVEL_KEY = f"{RESERVED}logLevel"
SERVER_KEY = f"{RESERVED}serverInfo"
SUBSCRIPTION_KEY = f"{RESERVED}subscriptionId"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Log levels, least severe first."""
OWNED = frozenset({"progressToken", VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY})
"""Keys of `_meta` that belong to one connection, and are not passed on."""

STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
"""HTTP status by error code in the modern era; any other code is 200."""
