"""Functions run where they belong, and threads are bounded whatever a function does."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from tests.sources.calling import call_of, run
from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.interfaces import Offer
from toolcrib.model import Call, Tool
from toolcrib.sdk import create_tool, threads
from toolcrib.sources import functions
from toolcrib.sources.functions import Functions, ModuleProblem
from toolcrib.testing import a_caller


class Listener:
    """A link that remembers what it was told."""

    def __init__(self) -> None:
        self.heard = anyio.Event()
        self.tools: Sequence[Tool] = ()

    def up(self, offer: Offer) -> None:
        self.tools = offer.tools
        self.heard.set()

    def down(self, reason: str) -> None:
        raise AssertionError(reason)

    def updated(self, uri: str) -> None:
        raise AssertionError(uri)


async def test_it_offers_its_tools_until_cancelled_and_then_lets_go() -> None:
    closed: list[bool] = []

    async def close() -> None:
        await anyio.lowlevel.checkpoint()
        closed.append(True)

    @create_tool
    def act() -> None: ...

    source = Functions("test", [act], family="core", close=close)
    listener = Listener()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(source.run, listener)
            await listener.heard.wait()
            assert closed == []
            tasks.cancel_scope.cancel()
    assert [(each.name, each.family) for each in listener.tools] == [("test:act", "core")]
    assert closed == [True]
    assert (source.id, source.mortal, source.timeout) == ("test", False, None)


async def test_a_source_that_holds_nothing_just_ends() -> None:
    listener = Listener()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Functions("test", []).run, listener)
            await listener.heard.wait()
            tasks.cancel_scope.cancel()
    assert list(listener.tools) == []


@pytest.mark.requirement("B1")
def test_two_tools_of_one_name_are_refused() -> None:
    @create_tool(name="act")
    def one() -> None: ...

    @create_tool(name="act")
    def two() -> None: ...

    with pytest.raises(ModuleProblem) as raised:
        Functions("test", [one, two])
    assert matches("sources", "two tools of one name are refused", str(raised.value))


@pytest.mark.requirement("B1")
async def test_async_functions_run_on_the_loop_and_others_off_it() -> None:
    @create_tool
    async def here() -> int:
        return threading.get_ident()

    @create_tool
    def there() -> int:
        return threading.get_ident()

    assert (await run(here)).data == threading.get_ident()
    assert (await run(there)).data != threading.get_ident()


@pytest.mark.requirement("B1")
async def test_blocking_function_does_not_block_the_loop() -> None:
    gate = threading.Event()

    @create_tool
    def wait() -> bool:
        return gate.wait(10)

    @create_tool
    async def release() -> None:
        gate.set()

    source = Functions("test", [wait, release])
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(source.call, call_of(wait))
            await source.call(call_of(release))


async def test_a_sync_wrapper_around_an_async_function_is_awaited() -> None:
    async def inner(number: int) -> int:
        return number + 1

    @create_tool
    def outer(number: int) -> Any:
        return inner(number)

    assert (await run(outer, {"number": 1})).data == 2


async def test_the_deadline_is_kept_by_a_function_that_hangs() -> None:
    gate = threading.Event()

    @create_tool
    def hang() -> None:
        gate.wait(10)

    try:
        with anyio.fail_after(5), anyio.move_on_after(0.05) as scope:
            await run(hang)
        assert scope.cancelled_caught
    finally:
        gate.set()


async def test_hung_functions_take_up_places_and_give_them_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MAX_THREADS", 2)
    gate, begun = threading.Event(), threading.Semaphore(0)

    @create_tool
    def hang() -> None:
        begun.release()
        gate.wait(10)

    @create_tool
    def answer() -> int:
        return 42

    source = Functions("test", [hang, answer], share=1.0)
    try:
        for _ in range(2):
            await abandon(source, call_of(hang), begun)
        with anyio.move_on_after(0.1) as scope:
            await source.call(call_of(answer))
        assert scope.cancelled_caught, "both places are still taken by functions that hang"
    finally:
        gate.set()
    with anyio.fail_after(5):
        assert (await source.call(call_of(answer))).data == 42


@pytest.mark.requirement("I10")
async def test_hung_functions_of_one_key_leave_threads_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MAX_THREADS", 4)
    gate, begun = threading.Event(), threading.Semaphore(0)
    mine, other = a_caller(id="key:a", key="a"), a_caller(id="key:b", key="b")

    @create_tool
    def hang() -> None:
        begun.release()
        gate.wait(10)

    @create_tool
    def answer() -> int:
        return 42

    source = Functions("test", [hang, answer])
    try:
        for _ in range(3):
            await abandon(source, call_of(hang, caller=mine), begun)
        with anyio.move_on_after(0.1) as scope:
            await source.call(call_of(answer, caller=mine))
        assert scope.cancelled_caught
        with anyio.fail_after(5):
            assert (await source.call(call_of(answer, caller=other))).data == 42
    finally:
        gate.set()


async def abandon(source: Functions, call: Call, begun: threading.Semaphore) -> None:
    """Call, and stop waiting as soon as the function has begun."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.call, call)
        while not begun.acquire(blocking=False):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


async def test_call_cancelled_while_queued_frees_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MAX_THREADS", 1)
    ran: list[int] = []

    @create_tool
    def act() -> int:
        ran.append(1)
        return 1

    source = Functions("test", [act])
    for _ in range(3):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await source.call(call_of(act))
    assert ran == []
    with anyio.fail_after(5):
        assert (await source.call(call_of(act))).data == 1


async def test_call_cancelled_before_its_thread_starts_frees_its_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(functions, "MAX_THREADS", 1)

    @create_tool
    def act() -> int:
        return 1

    source = Functions("test", [act])
    for _ in range(3):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(source.call, call_of(act))
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    with anyio.fail_after(5):
        assert (await source.call(call_of(act))).data == 1


async def test_a_thread_that_comes_too_late_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[Callable[[], Any]] = []
    ran: list[int] = []

    @create_tool
    def act() -> None:
        ran.append(1)

    async def never_started(work: Callable[[], Any], **options: Any) -> None:
        late.append(work)
        raise OSError("no more threads")

    monkeypatch.setattr(threads.to_thread, "run_sync", never_started)
    with pytest.raises(Refused) as refused:
        await run(act)
    assert refused.value.problem.code == "OVERLOADED"
    assert late[0]() is None
    assert ran == []
