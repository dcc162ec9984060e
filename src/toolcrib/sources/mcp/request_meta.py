"""Filters `_meta` of parameters and results: some keys are forwarded, others belong to one connection."""

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.hints import HintsError, read
from toolcrib.model import Hints, Json, JsonObject

RESERVED = "io.modelcontextprotocol/"
"""Prefix of the protocol's own keys."""

OURS = "toolcrib/"
"""Prefix of the keys by which a gateway describes a result."""

HINTS = f"{OURS}agentHints"
"""Key of a server's hints for the agent; the gateway uses the same one."""


def hinted(meta: Json) -> Hints | None:
    """Return the hints that come with a server's result; None if they are missing or invalid."""
    said: Json = cast("JsonObject", meta).get(HINTS) if isinstance(meta, Mapping) else None
    if not isinstance(said, Mapping):
        return None
    try:
        return read(cast("JsonObject", said))
    except HintsError:
        return None


def passed(meta: Json) -> dict[str, Any]:
    """Return the keys for the other end, without those that the protocol defines for one connection."""
    if not meta or not isinstance(meta, Mapping):
        return {}
    said = cast("JsonObject", meta)
    return {
        key: value for key, value in said.items() if key != "progressToken" and not key.startswith(RESERVED)
    }


def answered(meta: Json) -> dict[str, Any]:
    """Return the keys that a server added to a result, without those that only this gateway may set."""
    return {key: value for key, value in passed(meta).items() if not key.startswith(OURS)}


def carried(fields: JsonObject) -> JsonObject:
    """Return parameters or a result for forwarding over another connection."""
    if "_meta" not in fields:
        return fields
    kept = passed(fields["_meta"])
    rest = {key: value for key, value in fields.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept else rest
