"""Gateway ids, for loop detection: a gateway's own id, and the ids on the path of a request or definition."""

import re
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model.value import Json, JsonObject

GATEWAY = "toolcrib/gateway"
"""`_meta` key of an initialize response: the id of the responding gateway."""
GATEWAYS = "toolcrib/gateways"
"""`_meta` key of a request or listed definition: the ids of the gateways it passed through."""
GATEWAYS_VARIABLE = "TOOLCRIB_GATEWAYS"
"""Environment variable with the ids of the gateways that started a program, outermost first."""
MAX_GATEWAYS = 8
"""Maximum number of gateways on the path of a request, or in a chain of started processes."""

_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


def gateway_id(meta: Json) -> str:
    """Return the gateway id in `_meta`; empty if the server is no Toolcrib gateway."""
    found = cast("JsonObject", meta).get(GATEWAY) if isinstance(meta, Mapping) else None
    return found if isinstance(found, str) and _ID.fullmatch(found) else ""


def gateways_in(meta: Json) -> tuple[str, ...]:
    """Return the gateway ids in `_meta`; none if the value is malformed."""
    found = cast("JsonObject", meta).get(GATEWAYS) if isinstance(meta, Mapping) else None
    if not isinstance(found, list):
        return ()
    ids = cast("list[Any]", found)
    if len(ids) > MAX_GATEWAYS or not all(isinstance(each, str) and _ID.fullmatch(each) for each in ids):
        return ()
    return tuple(ids)


def gateways_of_process(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids of the gateways that started this process."""
    return tuple(each for each in env.get(GATEWAYS_VARIABLE, "").split(",") if _ID.fullmatch(each))
