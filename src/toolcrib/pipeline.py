"""How steps compose: a chain is a handler wrapped in the steps that fit its tool."""

from collections.abc import Sequence

from toolcrib.interfaces import Handler, Stage, Step
from toolcrib.model import Tool


def compose(steps: Sequence[Step], tool: Tool, last: Handler) -> Handler:
    """Wrap `last` in the steps that have something to do for this tool, the first outermost."""
    handler = last
    for step in reversed(steps):
        stage = step.fit(tool)
        if stage is not None:
            handler = _before(stage, handler)
    return handler


def _before(stage: Stage, proceed: Handler) -> Handler:
    # Half the price of `partial` with a keyword, for every step of every call.
    return lambda call: stage(call, proceed)


def fitting(steps: Sequence[Step], tool: Tool) -> tuple[str, ...]:
    """Name the steps a call to this tool passes, in order."""
    return tuple(type(step).__name__.lower() for step in steps if step.fit(tool) is not None)
