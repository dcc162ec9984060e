"""What travels in `_meta`, beside parameters and results: some goes on, some belongs to one connection."""

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.hints import HintsError, read
from toolcrib.model import Hints, Json, JsonObject

RESERVED = "io.modelcontextprotocol/"
"""How the protocol's own keys begin."""

OURS = "toolcrib/"
"""How the keys begin under which a gateway speaks of an answer itself."""

HINTS = f"{OURS}agentHints"
"""Where a server may put hints for the agent, as we do."""


def hinted(meta: Json) -> Hints | None:
    """Hints a server gives along with a result; those that break a rule are as good as none."""
    said: Json = cast("JsonObject", meta).get(HINTS) if isinstance(meta, Mapping) else None
    if not isinstance(said, Mapping):
        return None
    try:
        return read(cast("JsonObject", said))
    except HintsError:
        return None


def passed(meta: Json) -> dict[str, Any]:
    """What was added for whoever is at the other end; what is said to us, as the protocol demands, is not."""
    if not meta or not isinstance(meta, Mapping):
        return {}
    said = cast("JsonObject", meta)
    return {
        key: value for key, value in said.items() if key != "progressToken" and not key.startswith(RESERVED)
    }


def answered(meta: Json) -> dict[str, Any]:
    """What a server added to an answer; that it failed, or was kept, is for us to say."""
    return {key: value for key, value in passed(meta).items() if not key.startswith(OURS)}


def carried(fields: JsonObject) -> JsonObject:
    """Parameters or a result as they go on to another connection."""
    if "_meta" not in fields:
        return fields
    kept = passed(fields["_meta"])
    rest = {key: value for key, value in fields.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept else rest
