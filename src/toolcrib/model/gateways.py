"""Ids of gateways: what each shows of itself, and those that a request or a definition came through."""

import re
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model.json import Json, JsonObject

GATEWAY = "toolcrib/gateway"
"""In the `_meta` of a greeting: the id of the gateway that answers."""
GATEWAYS = "toolcrib/gateways"
"""In the `_meta` of a request or of what is listed: the ids of the gateways it came through."""
GATEWAYS_VARIABLE = "TOOLCRIB_GATEWAYS"
"""The environment variable that tells a program which gateways have started it, the first one first."""
MAX_GATEWAYS = 8
"""How many gateways a request may come through, or start one another."""

_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


def gateway_id(meta: Json) -> str:
    """Return the id a gateway shows of itself; empty where it is none of ours."""
    found = cast("JsonObject", meta).get(GATEWAY) if isinstance(meta, Mapping) else None
    return found if isinstance(found, str) and _ID.fullmatch(found) else ""


def gateways_in(meta: Json) -> tuple[str, ...]:
    """Return the ids in `_meta`; none where what stands there is anything but ids."""
    found = cast("JsonObject", meta).get(GATEWAYS) if isinstance(meta, Mapping) else None
    if not isinstance(found, list):
        return ()
    ids = cast("list[Any]", found)
    if len(ids) > MAX_GATEWAYS or not all(isinstance(each, str) and _ID.fullmatch(each) for each in ids):
        return ()
    return tuple(ids)


def gateways_of_process(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids of the gateways that have started this process."""
    return tuple(each for each in env.get(GATEWAYS_VARIABLE, "").split(",") if _ID.fullmatch(each))
