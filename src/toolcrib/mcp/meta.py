"""Keys of `_meta`: those of the protocol, those of Toolcrib, and which of them are forwarded."""

import re
from collections.abc import Mapping
from typing import Any, cast

import orjson

from toolcrib.model import Json, JsonObject

# --- Keys of the protocol ---

PROTOCOL_PREFIX = "io.modelcontextprotocol/"
"""Prefix of the protocol's own keys, which describe one connection."""
VERSION_KEY = f"{PROTOCOL_PREFIX}protocolVersion"
CAPABILITIES_KEY = f"{PROTOCOL_PREFIX}clientCapabilities"
CLIENT_KEY = f"{PROTOCOL_PREFIX}clientInfo"
LEVEL_KEY = f"{PROTOCOL_PREFIX}logLevel"
SERVER_KEY = f"{PROTOCOL_PREFIX}serverInfo"
SUBSCRIPTION_KEY = f"{PROTOCOL_PREFIX}subscriptionId"
PROGRESS_TOKEN = "progressToken"  # noqa: S105 - a field name
TRACEPARENT = "traceparent"
REQUEST_KEYS = frozenset({PROGRESS_TOKEN, VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY})
"""Keys of a request that belong to one connection, and are not passed on."""

# --- Keys of Toolcrib ---

TOOLCRIB_PREFIX = "toolcrib/"
"""Prefix of the keys by which a gateway describes a result."""
HINTS_KEY = f"{TOOLCRIB_PREFIX}agentHints"
"""The hints for the agent, of a server and of the gateway."""
METADATA_KEY = f"{TOOLCRIB_PREFIX}metadata"
ERROR_KEY = f"{TOOLCRIB_PREFIX}error"
MESSAGE_KEY = f"{TOOLCRIB_PREFIX}message"
EXTENSIONS_KEY = f"{TOOLCRIB_PREFIX}mentraExtensions"
IDEMPOTENCY_KEY = f"{TOOLCRIB_PREFIX}idempotencyKey"
CORRELATION_KEY = f"{TOOLCRIB_PREFIX}correlationId"

_META_FIRST = b'{"_meta":{'


def forwarded_meta(meta: Json) -> dict[str, Any]:
    """Return the keys for the other end, without those that the protocol defines for one connection."""
    if not meta or not isinstance(meta, Mapping):
        return {}
    return {
        key: value
        for key, value in cast("JsonObject", meta).items()
        if key != PROGRESS_TOKEN and not key.startswith(PROTOCOL_PREFIX)
    }


def server_meta(meta: Json) -> dict[str, Any]:
    """Return the keys that a server added to a result, without those that only this gateway may set."""
    return {key: value for key, value in forwarded_meta(meta).items() if not key.startswith(TOOLCRIB_PREFIX)}


def forwarded(fields: JsonObject) -> JsonObject:
    """Return parameters or a result for forwarding over another connection."""
    if "_meta" not in fields:
        return fields
    meta = forwarded_meta(fields["_meta"])
    rest = {key: value for key, value in fields.items() if key != "_meta"}
    return {**rest, "_meta": meta} if meta else rest


def with_progress_token(params: bytes, token: int) -> bytes:
    """Add a progress token to encoded parameters."""
    if params.startswith(_META_FIRST):
        rest = params[len(_META_FIRST) :]
        return b'%b"progressToken":%d%b%b' % (_META_FIRST, token, b"" if rest[:1] == b"}" else b",", rest)
    decoded = orjson.loads(params)
    decoded["_meta"] = {**decoded.get("_meta", {}), PROGRESS_TOKEN: token}
    return orjson.dumps(decoded)


# --- Gateway ids, for loop detection ---

GATEWAY_KEY = f"{TOOLCRIB_PREFIX}gateway"
"""In an initialize response: the id of the responding gateway."""
GATEWAYS_KEY = f"{TOOLCRIB_PREFIX}gateways"
"""In a request or listed definition: the ids of the gateways it passed through."""
GATEWAYS_VARIABLE = "TOOLCRIB_GATEWAYS"
"""Environment variable with the ids of the gateways that started a program, outermost first."""
MAX_GATEWAYS = 8
"""Maximum number of gateways on the path of a request, or in a chain of started processes."""

_GATEWAY_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


def gateway_id(meta: Json) -> str:
    """Return the gateway id in `_meta`; empty if the server is no Toolcrib gateway."""
    own = cast("JsonObject", meta).get(GATEWAY_KEY) if isinstance(meta, Mapping) else None
    return own if isinstance(own, str) and _GATEWAY_ID.fullmatch(own) else ""


def gateways_in(meta: Json) -> tuple[str, ...]:
    """Return the gateway ids in `_meta`; none if the value is malformed."""
    ids: Any = cast("JsonObject", meta).get(GATEWAYS_KEY) if isinstance(meta, Mapping) else None
    if not isinstance(ids, list) or len(cast("list[Any]", ids)) > MAX_GATEWAYS:
        return ()
    path = tuple(cast("list[Any]", ids))
    return path if all(isinstance(each, str) and _GATEWAY_ID.fullmatch(each) for each in path) else ()


def gateways_of_process(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids of the gateways that started this process."""
    return tuple(each for each in env.get(GATEWAYS_VARIABLE, "").split(",") if _GATEWAY_ID.fullmatch(each))
