"""What two peers may send each other: protocol revisions in two eras, and client capabilities."""

from collections.abc import Collection, Mapping
from typing import Literal, cast

from toolcrib.mcp.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND
from toolcrib.mcp.methods import ELICIT, LIST_ROOTS, SAMPLE
from toolcrib.model import JsonObject

# --- Revisions, and what each introduced ---

Era = Literal["modern", "legacy"]
"""`modern`: stateless requests (2026-07-28). `legacy`: an `initialize` handshake first (up to 2025-11-25)."""

MODERN = "2026-07-28"
LEGACY_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions with an `initialize` handshake and a session, oldest first."""
LEGACY = LEGACY_REVISIONS[-1]
REVISIONS = (*LEGACY_REVISIONS, MODERN)

BATCH_REVISION = "2025-03-26"
"""The only revision with JSON-RPC batches."""
REVISION_HEADER_SINCE = "2025-06-18"
"""The first revision with the MCP-Protocol-Version header."""
STRUCTURED_CONTENT_SINCE = "2025-06-18"
"""The first revision with `structuredContent` besides the content blocks of a result."""
FIELDS_SINCE = {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"}
"""The revision that introduced a field of any definition; absent for a field of the first revision."""
TOOL_FIELDS_SINCE = {**FIELDS_SINCE, "annotations": "2025-03-26", "outputSchema": "2025-06-18"}
"""The revision that introduced a field of a tool definition."""
BLOCKS_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""The revision that introduced a type of content block."""

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Log levels, least severe first."""

# --- Client capabilities: which server request needs which one, and whether a request exceeds it ---

Relay = Literal["elicitation", "sampling", "roots"]
"""A client capability for requests of a server, which a gateway can relay."""

RELAYS: tuple[Relay, ...] = ("elicitation", "sampling", "roots")
CAPABILITY_OF_REQUEST: dict[str, Relay] = {ELICIT: "elicitation", SAMPLE: "sampling", LIST_ROOTS: "roots"}
"""The client capability that each server request needs."""

_NO_CAPABILITIES: JsonObject = {}
_SAMPLING_TOOLS = frozenset({"tools", "toolChoice"})


def relayed_capabilities(declared: JsonObject, relays: Collection[str]) -> JsonObject:
    """Return the client's capabilities that a server may know, as the client declared them."""
    if not declared or not relays:
        return _NO_CAPABILITIES
    return {name: declared[name] for name in RELAYS if name in relays and _is_object(declared.get(name))}


def request_error(method: str, params: JsonObject, capabilities: JsonObject) -> tuple[int, str] | None:
    """Return the error (code, message) of a server request that exceeds the capabilities; None if it fits."""
    capability = CAPABILITY_OF_REQUEST.get(method)
    declared = capabilities.get(capability) if capability is not None else None
    if not isinstance(declared, Mapping):
        return METHOD_NOT_FOUND, f"the client has not declared the capability for {method[:100]!r}"
    if capability == "elicitation":
        return _mode_error(params, cast("JsonObject", declared))
    if capability == "sampling" and "tools" not in declared and not params.keys().isdisjoint(_SAMPLING_TOOLS):
        return INVALID_PARAMS, "the client has not declared tools for sampling"
    return None


def _mode_error(params: JsonObject, declared: JsonObject) -> tuple[int, str] | None:
    mode = params.get("mode", "form")
    # A client without modes predates them, and supports forms.
    if mode in ("form", "url") and (mode in declared or (mode == "form" and "url" not in declared)):
        return None
    return INVALID_PARAMS, f"the client has not declared the elicitation mode {str(mode)[:40]!r}"


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)
