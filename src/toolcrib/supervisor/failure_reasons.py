"""Why a source died, in one line an operator can read."""

import asyncio
from collections.abc import Awaitable
from typing import cast

from toolcrib.errors import ToolcribError

LONGEST = 500

_PLAIN = (ToolcribError, ConnectionError, TimeoutError)
"""What sources raise on purpose, so that what it says is all there is to say."""


def one_line(text: str) -> str:
    """Return text on one line, cut where it gets too long."""
    return " ".join(text.split())[:LONGEST]


def reason(error: BaseException) -> str:
    """Say what an error is; of a group, the first error that is in it."""
    if isinstance(error, BaseExceptionGroup):
        return reason(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    kind, said = type(error).__name__, str(error)
    if said and isinstance(error, _PLAIN):
        return one_line(said)
    return one_line(f"{kind}: {said}" if said else kind)


async def outcome(work: Awaitable[object]) -> Exception | None:
    """Wait for what a source does; return what it died of, None where it ended in good order."""
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
