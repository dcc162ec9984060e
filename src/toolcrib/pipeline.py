"""Composes steps: a chain is a handler wrapped in the steps (middleware) that apply to its tool."""

from collections.abc import Sequence

from toolcrib.interfaces import Handler, Stage, Step
from toolcrib.model import Tool


def compose(steps: Sequence[Step], tool: Tool, last: Handler) -> Handler:
    """Wrap `last` in the steps that apply to this tool, the first one outermost."""
    handler = last
    for step in reversed(steps):
        stage = step.fit(tool)
        if stage is not None:
            handler = _wrapped(stage, handler)
    return handler


def _wrapped(stage: Stage, proceed: Handler) -> Handler:
    # A lambda: functools.partial with a keyword costs twice as much, and this runs per step and call.
    return lambda call: stage(call, proceed)


def step_names(steps: Sequence[Step], tool: Tool) -> tuple[str, ...]:
    """Return the names of the steps of a call to this tool, in order."""
    return tuple(type(step).__name__.lower() for step in steps if step.fit(tool) is not None)
