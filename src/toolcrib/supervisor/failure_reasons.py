"""Failure reasons of sources, rendered as one line for operators."""

import asyncio
from collections.abc import Awaitable
from typing import cast

from toolcrib.errors import ToolcribError

# Characters of one reason.
LONGEST = 500

_PLAIN = (ToolcribError, ConnectionError, TimeoutError)
"""Errors that sources raise deliberately: their message is complete without the class name."""


def one_line(text: str) -> str:
    """Collapse whitespace to single spaces and truncate to LONGEST characters."""
    return " ".join(text.split())[:LONGEST]


def reason(error: BaseException) -> str:
    """Return the description of an error; of an exception group, that of its first leaf error."""
    if isinstance(error, BaseExceptionGroup):
        return reason(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    kind, said = type(error).__name__, str(error)
    if said and isinstance(error, _PLAIN):
        return one_line(said)
    return one_line(f"{kind}: {said}" if said else kind)


async def outcome(work: Awaitable[object]) -> Exception | None:
    """Await a source's work; return the error that ended it, or None after a normal end.

    A cancellation is re-raised if it was requested from outside. A CancelledError from within the source
    counts as a lost connection.
    """
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the boundary: whatever a source raises is its death
        return error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return ConnectionError("it broke off from within")
    return None
