"""A call that gets no thread is refused: its function has not begun, so nothing was done."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.steps.replay_steps import code, keyed, replay_steps
from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.interfaces import Step, is_not_begun, note_not_begun
from toolcrib.model import Call, Result
from toolcrib.sdk import create_tool, threads
from toolcrib.sdk.threads import Threads
from toolcrib.sources import functions
from toolcrib.sources.functions import Functions
from toolcrib.steps.attempt import Attempt
from toolcrib.steps.bulkhead import Bulkhead

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]

SHORT = 0.5
"""A time limit within which a thread begins on a slow machine too, and which the test waits for."""


class Hung:
    """A function that hangs until it is let go, and how often another one was called."""

    def __init__(self) -> None:
        self.gate, self.begun, self.called = threading.Event(), threading.Event(), 0

    def hang(self) -> None:
        self.begun.set()
        self.gate.wait(30)

    def count(self) -> int:
        self.called += 1
        return self.called


@asynccontextmanager
async def all_taken(places: Threads) -> AsyncGenerator[Hung]:
    """Occupy the only thread with an abandoned function."""
    hung = Hung()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(places.run, "eve", hung.hang)
        await anyio.to_thread.run_sync(hung.begun.wait)
        tasks.cancel_scope.cancel()
    try:
        yield hung
    finally:
        hung.gate.set()


async def test_the_wait_for_a_thread_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "THREAD_WAIT_SECONDS", 0.02)
    places = Threads(1)
    async with all_taken(places) as hung:
        with anyio.fail_after(5), pytest.raises(Refused) as refused:
            await places.run("eve", hung.count)
        assert matches("library", "the wait for a thread has an end", str(refused.value))
        assert (refused.value.problem.code, refused.value.problem.retry_after) == ("OVERLOADED", 2.0)
        hung.gate.set()
        with anyio.fail_after(5):
            while not hung.called:
                try:
                    await places.run("eve", hung.count)
                except Refused:
                    await anyio.sleep(0.01)
    assert hung.called == 1


async def once_freed(call: Callable[[], Awaitable[str | None]]) -> str | None:
    """The code of a call under a key that a slow store may free a moment after the refusal."""
    with anyio.fail_after(30):
        while (found := await call()) == "IN_PROGRESS":  # noqa: ASYNC110 - the store tells nobody
            await anyio.sleep(0.01)
    return found


@pytest.mark.parametrize("limit", ["the tool's", "the caller's"])
async def test_a_time_limit_before_a_thread_is_free_frees_the_key(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(functions, "MAX_THREADS", 1)
    hung = Hung()

    @create_tool(timeout=SHORT if limit == "the tool's" else 30)
    def hang() -> None:
        hung.hang()

    @create_tool(timeout=SHORT if limit == "the tool's" else 30)
    def change() -> int:
        return hung.count()

    source = Functions("fake", [hang, change])
    tools = {each.local: each for each in (hang.bind("fake"), change.bind("fake"))}
    steps: tuple[Step, ...] = (Bulkhead(),)
    async with replay_steps() as replaying:
        attempt = Attempt(lambda _source: None)

        async def call(name: str) -> str | None:
            tool = tools[name]
            last = attempt.fit(tool)
            chain = replaying.chain(lambda each: last(each, source.call), tool, steps)
            deadline = None if limit == "the tool's" else anyio.current_time() + SHORT
            return code(await chain(keyed(name, tool, deadline=deadline)))

        try:
            assert await call("hang") == "OUTCOME_UNKNOWN"
            assert await once_freed(lambda: call("change")) == "OVERLOADED"
            assert await once_freed(lambda: call("change")) == "OVERLOADED"
        finally:
            hung.gate.set()
        with anyio.fail_after(30):
            while await call("change") is not None:  # noqa: ASYNC110 - a thread tells nobody when it ends
                await anyio.sleep(0.01)
    assert hung.called == 1


async def test_call_that_ends_before_it_began_frees_its_key() -> None:
    calls: list[str] = []

    async def wait(call: Call) -> Result:
        calls.append(call.id)
        if len(calls) == 1:
            error = asyncio.CancelledError()
            note_not_begun(error)
            raise error
        return Result(data={})

    async with replay_steps() as replaying:
        with pytest.raises(asyncio.CancelledError):
            await replaying.chain(wait)(keyed())
        assert code(await replaying.chain(wait)(keyed())) is None
    assert len(calls) == 2


async def test_cancelled_waiter_is_released() -> None:
    places = Threads(1)
    async with all_taken(places) as hung:
        waiting = asyncio.ensure_future(places.run("eve", hung.count))  # noqa: TID251 - cancelled as asyncio does
        await anyio.sleep(0.01)
        waiting.cancel()
        with anyio.fail_after(5):
            await asyncio.wait((waiting,))
        assert waiting.cancelled()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await waiting
        assert is_not_begun(cancelled.value)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await places.run("eve", hung.count)
        with anyio.move_on_after(0.01) as scope:
            await places.run("eve", hung.count)
        assert scope.cancelled_caught
    with anyio.fail_after(5):
        assert await places.run("eve", hung.count) == 1


async def test_a_system_without_threads_begins_no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(work: Callable[[], Any], **options: Any) -> None:
        raise RuntimeError("can't start new thread")

    places, hung = Threads(1), Hung()
    with monkeypatch.context() as patch:
        patch.setattr(threads.to_thread, "run_sync", none)
        for _ in range(3):
            with pytest.raises(Refused) as refused:
                await places.run("eve", hung.count)
            assert refused.value.problem.code == "OVERLOADED"
    assert await places.run("eve", hung.count) == 1
