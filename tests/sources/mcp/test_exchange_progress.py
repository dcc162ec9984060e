"""Progress reaches the one who asked for it, before the result, and never holds anybody up."""

from typing import Any

import anyio
import pytest

from tests.sources.mcp.far_end import Asking, FarEnd, settle
from toolcrib.model import Progress
from toolcrib.sources.mcp.connection import ConnectionLost, JsonRpcError, RequestCallbacks
from toolcrib.sources.mcp.server_messages import MAX_PENDING_NOTIFICATIONS

pytestmark = pytest.mark.anyio


@pytest.fixture
def far_end() -> FarEnd:
    return FarEnd()


async def test_progress_is_passed_on_before_the_result(far_end: FarEnd) -> None:
    told: list[Progress] = []

    async def report(news: Progress) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(news)

    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(report))
        assert far_end.sent[0]["params"] == {"number": 0, "_meta": {"progressToken": 1}}
        far_end.progress(1, progress=1, total=2.5, message="half")
        await settle()
        assert told == [Progress(done=1, total=2.5, message="half")]
        far_end.progress(1, progress="x", total=True, message=3)
        far_end.progress(1, progress=3)
        far_end.say(id=1, result={"ok": 1})
    assert told[1:] == [Progress(), Progress(done=3)]
    assert asking.ended == {0: {"ok": 1}}
    assert not far_end.heard


async def test_progress_flood_keeps_newest_without_blocking(far_end: FarEnd) -> None:
    told: list[Progress] = []

    async def report(news: Progress) -> None:
        told.append(news)
        far_end.progress(1, progress=-1)
        await anyio.lowlevel.checkpoint()

    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(report))
        for step in range(1_000):
            far_end.progress(1, progress=step)
        far_end.say(id=1, result={})
        with anyio.fail_after(5):
            while not asking.ended:
                await anyio.lowlevel.checkpoint()
    assert told[0] == Progress(done=1_000 - MAX_PENDING_NOTIFICATIONS)
    assert len(told) <= MAX_PENDING_NOTIFICATIONS + 2


@pytest.mark.parametrize("token", [1, 99, None, "1", True, [1]])
async def test_unrequested_progress_is_counted_and_dropped(far_end: FarEnd, token: Any) -> None:
    async with Asking(far_end) as asking:
        await asking.begin(0)
        far_end.progress(token, progress=1)
        asking.cancel()
    assert far_end.exchange.unclaimed == 1
    assert not far_end.heard


async def test_error_and_cancellation_reach_progress_listener(far_end: FarEnd) -> None:
    async def report(_: Progress) -> None:
        await anyio.sleep_forever()

    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(report))
        await asking.begin(1, callbacks=RequestCallbacks(report))
        await asking.begin(2, callbacks=RequestCallbacks(report))
        far_end.say(id=1, error={"code": 1, "message": "no"})
        far_end.progress(2, progress=1)
        await settle()
        asking.scopes[1].cancel()
        asking.scopes[2].cancel()
    assert isinstance(asking.ended.pop(0), JsonRpcError)
    assert not asking.ended
    assert [reply["params"]["requestId"] for reply in far_end.replies] == [2, 3]


async def test_a_listener_that_fails_ends_the_request(far_end: FarEnd) -> None:
    async def report(_: Progress) -> None:
        raise ConnectionLost("the caller is gone")

    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(report))
        far_end.progress(1, progress=1)
    assert str(asking.ended[0]) == "the caller is gone"
    assert far_end.replies[0]["params"]["requestId"] == 1


@pytest.mark.requirement("I5")
async def test_progress_message_is_bounded(far_end: FarEnd) -> None:
    told: list[Progress] = []

    async def report(news: Progress) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(news)

    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(report))
        far_end.progress(1, message="x" * (1 << 20))
        far_end.say(id=1, result={})
    assert [len(news.message or "") for news in told] == [2_000]
