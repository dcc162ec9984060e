"""The revisions of the protocol: two eras, and what a message must not say in which of them."""

MODERN = "2026-07-28"
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Older revisions, in which a client introduces itself once and keeps a session."""
LEGACY = HANDSHAKES[-1]
REVISIONS = (*HANDSHAKES, MODERN)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
RESOURCE_NOT_FOUND = -32002
"""Before 2026-07-28, which has INVALID_PARAMS for it."""

RESERVED = "io.modelcontextprotocol/"
"""How the protocol's own keys in `_meta` begin."""
VERSION_KEY = f"{RESERVED}protocolVersion"
CAPABILITIES_KEY = f"{RESERVED}clientCapabilities"
CLIENT_KEY = f"{RESERVED}clientInfo"
LEVEL_KEY = f"{RESERVED}logLevel"
SERVER_KEY = f"{RESERVED}serverInfo"
SUBSCRIPTION_KEY = f"{RESERVED}subscriptionId"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""How severe a log message is, the least first."""
OWNED = frozenset({"progressToken", VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY})
"""Keys of `_meta` that belong to the connection they came over, and are not passed on."""

STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
"""The HTTP status of an error in the modern era; any other is 200."""
