"""What travels in `_meta`, beside parameters and results: some goes on, some belongs to one connection."""

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model import Json, JsonObject

RESERVED = "io.modelcontextprotocol/"
"""How the protocol's own keys begin."""


def passed(meta: Json) -> dict[str, Any]:
    """What was added for whoever is at the other end; what is said to us, as the protocol demands, is not."""
    if not meta or not isinstance(meta, Mapping):
        return {}
    said = cast("JsonObject", meta)
    return {
        key: value for key, value in said.items() if key != "progressToken" and not key.startswith(RESERVED)
    }


def carried(fields: JsonObject) -> JsonObject:
    """Parameters or a result as they go on to another connection."""
    if "_meta" not in fields:
        return fields
    kept = passed(fields["_meta"])
    rest = {key: value for key, value in fields.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept else rest
