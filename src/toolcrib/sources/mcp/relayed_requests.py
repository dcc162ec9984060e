"""Server requests relayed to callers: limited by the caller's capabilities and the operator's settings."""

from collections.abc import Collection, Mapping
from typing import Literal, cast

from toolcrib.model import JsonObject

Relay = Literal["elicitation", "sampling", "roots"]

RELAYS: tuple[Relay, ...] = ("elicitation", "sampling", "roots")
"""Every client capability that can be relayed."""
ASKED_BY: dict[str, Relay] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""Client capability that each server request requires."""
LARGEST_QUESTION = 1 << 20
"""Maximum bytes of one server request."""
METHOD_NOT_FOUND, INVALID_PARAMS, NO_ANSWER = -32601, -32602, -32000
"""JSON-RPC error codes of refused server requests."""

_NOTHING: JsonObject = {}
_TOOLS = frozenset({"tools", "toolChoice"})


def relayed(declared: JsonObject, relay: Collection[str]) -> JsonObject:
    """Return the caller's capabilities that a server may know, as the caller declared them."""
    if not declared or not relay:
        return _NOTHING
    return {
        each: declared[each] for each in RELAYS if each in relay and isinstance(declared.get(each), Mapping)
    }


def unfit(method: str, params: JsonObject, capabilities: JsonObject) -> tuple[int, str] | None:
    """Return the error (code, message) if a server request exceeds the capabilities; None if it fits."""
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
    # A client without modes predates them, and supports forms.
    if mode in ("form", "url") and (mode in declared or (mode == "form" and "url" not in declared)):
        return None
    return INVALID_PARAMS, f"this client does not say that it takes questions of mode {str(mode)[:40]!r}"
