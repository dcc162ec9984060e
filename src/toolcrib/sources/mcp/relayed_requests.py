"""What a server may ask a caller: within what the caller declared, and what the operator lets through."""

from collections.abc import Collection, Mapping
from typing import Literal, cast

from toolcrib.model import JsonObject

Relay = Literal["elicitation", "sampling", "roots"]

RELAYS: tuple[Relay, ...] = ("elicitation", "sampling", "roots")
"""Everything a caller can be asked."""
ASKED_BY: dict[str, Relay] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
LARGEST_QUESTION = 1 << 20
"""The most bytes of one question."""
METHOD_NOT_FOUND, INVALID_PARAMS, NO_ANSWER = -32601, -32602, -32000

_NOTHING: JsonObject = {}
_TOOLS = frozenset({"tools", "toolChoice"})


def relayed(declared: JsonObject, relay: Collection[str]) -> JsonObject:
    """What of a caller's capabilities a server gets to know, as the caller declared it."""
    if not declared or not relay:
        return _NOTHING
    return {
        each: declared[each] for each in RELAYS if each in relay and isinstance(declared.get(each), Mapping)
    }


def unfit(method: str, params: JsonObject, capabilities: JsonObject) -> tuple[int, str] | None:
    """Why a question may not be put to a caller with these capabilities: code and message of the refusal."""
    capability = ASKED_BY.get(method)
    declared = capabilities.get(capability) if capability is not None else None
    if not isinstance(declared, Mapping):
        return METHOD_NOT_FOUND, f"this client cannot be asked {method[:100]!r}: it did not say it can"
    if capability == "elicitation":
        return _unfit_form(params, cast("JsonObject", declared))
    if capability == "sampling" and "tools" not in declared and not params.keys().isdisjoint(_TOOLS):
        return INVALID_PARAMS, "this client does not say that it takes tools for sampling"
    return None


def _unfit_form(params: JsonObject, declared: JsonObject) -> tuple[int, str] | None:
    mode = params.get("mode", "form")
    # One that says nothing of modes is from before there were any, and takes forms.
    if mode in ("form", "url") and (mode in declared or (mode == "form" and "url" not in declared)):
        return None
    return INVALID_PARAMS, f"this client does not say that it takes questions of mode {str(mode)[:40]!r}"
