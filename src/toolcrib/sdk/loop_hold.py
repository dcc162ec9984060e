"""Logs a warning with the name of an async function that blocked the event loop for too long."""

import logging
from collections.abc import Awaitable, Coroutine, Generator
from inspect import iscoroutine
from time import perf_counter
from types import coroutine
from typing import Any, TypeVar, cast

log = logging.getLogger(__name__)

HELD_SECONDS = 0.25
"""One step of a coroutine that takes longer than this is a stall of the event loop."""

T = TypeVar("T")


def watched(awaitable: Awaitable[T], tool: str) -> Awaitable[T]:
    """Wrap a coroutine to time its steps; return other awaitables unchanged."""
    if not iscoroutine(awaitable):
        return awaitable
    return cast("Awaitable[T]", _timed(awaitable, tool))


@coroutine
def _timed(inner: Coroutine[Any, Any, T], tool: str) -> Generator[Any, Any, T]:
    thrown: BaseException | None = None
    while True:
        began = perf_counter()
        try:
            awaited = inner.send(None) if thrown is None else inner.throw(thrown)
        except StopIteration as end:
            return end.value
        finally:
            thrown = None  # its traceback refers to this frame
            _warn_if_held(tool, perf_counter() - began)
        try:
            yield awaited
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown into the function at once
            thrown = error


def _warn_if_held(tool: str, seconds: float) -> None:
    if seconds > HELD_SECONDS:
        advice = "make it a function without async, which runs in a thread"
        log.warning("%s held the event loop for %.2f s, and all requests with it: %s", tool, seconds, advice)
