"""How steps compose: a chain is a handler wrapped in the steps that fit its tool."""

from collections.abc import Sequence
from functools import partial

from toolcrib.interfaces import Handler, Step
from toolcrib.model import Tool


def compose(steps: Sequence[Step], tool: Tool, last: Handler) -> Handler:
    """Wrap `last` in the steps that have something to do for this tool, the first outermost."""
    handler = last
    for step in reversed(steps):
        stage = step.fit(tool)
        if stage is not None:
            handler = partial(stage, proceed=handler)
    return handler


def fitting(steps: Sequence[Step], tool: Tool) -> tuple[str, ...]:
    """Name the steps a call to this tool passes, in order."""
    return tuple(type(step).__name__.lower() for step in steps if step.fit(tool) is not None)
