"""The source `crib`, whose tools may ask on whose behalf they run: they are part of the gateway itself."""

from collections.abc import Iterable
from contextvars import ContextVar

from toolcrib.interfaces import Outcome
from toolcrib.model import Call, Caller, Result
from toolcrib.sdk import AnyTool
from toolcrib.sources.functions import Functions

CORE = "crib"

_calling: ContextVar[Call] = ContextVar("toolcrib_calling")


def caller() -> Caller:
    """Return who calls the tool that runs; for tools of this source alone."""
    return _calling.get().caller


def current_call() -> Call:
    """Return the call that the tool which runs answers; for tools of this source alone."""
    return _calling.get()


class BuiltinSource(Functions):
    """Functions that know their caller, in the context it asked in."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        super().__init__(CORE, tools, family="core")

    def call(self, call: Call) -> Outcome:
        """Call the function, which may ask who calls."""
        return self._known(call, super().call(call))

    async def _known(self, call: Call, outcome: Outcome) -> Result:
        before = _calling.set(call)
        try:
            return await outcome
        finally:
            _calling.reset(before)
