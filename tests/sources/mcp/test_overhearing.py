"""What a server reports and logs reaches its own caller, in order and without secrets, or nobody."""

from typing import Any

import pytest

from tests.sources.mcp.far_end import Asking, FarEnd, settle
from tests.sources.mcp.recording_channel import ALL, RecordingChannel, never
from toolcrib.model import Progress
from toolcrib.sources.mcp.connection import MAX_QUESTION_BYTES, RequestCallbacks
from toolcrib.sources.mcp.server_messages import MAX_LOG_BYTES

pytestmark = pytest.mark.anyio


@pytest.fixture
def far_end() -> FarEnd:
    """A server whose questions are relayed."""
    far_end = FarEnd()
    far_end.exchange.relay(ALL)
    return far_end


@pytest.mark.requirement("D14")
async def test_messages_and_progress_arrive_in_order_before_the_result() -> None:
    far_end, ann = FarEnd(), RecordingChannel()
    heard: list[Any] = []

    async def report(progress: Progress) -> None:
        heard.append(progress.done)

    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(report, ann))
        far_end.progress(1, progress=1)
        far_end.say(method="notifications/message", params={"level": "info", "data": "x"})
        far_end.progress(1, progress=2)
        far_end.say(id=1, result={})
    assert heard == [1, 2]
    assert ann.told == [{"level": "info", "data": "x"}]
    assert not far_end.heard


@pytest.mark.requirement("I5")
async def test_server_logs_are_relayed_without_secrets() -> None:
    ann, heard = RecordingChannel(), list[Progress]()

    async def report(progress: Progress) -> None:
        heard.append(progress)

    callbacks = RequestCallbacks(report, ann, lambda text: text.replace("s3cret", "***"))
    await callbacks.deliver({"level": "info", "data": {"the s3cret": ["is s3cret", 7]}})
    await callbacks.deliver(Progress(done=1, message="with s3cret"))
    await callbacks.deliver(Progress(done=2))
    assert ann.told == [{"level": "info", "data": {"the ***": ["is ***", 7]}}]
    assert heard == [Progress(done=1, message="with ***"), Progress(done=2)]


@pytest.mark.parametrize(
    "others, taken",
    [
        ([], True),
        ([None], False),
        ([RequestCallbacks(None, RecordingChannel("ben"))], False),
        ([RequestCallbacks(None, RecordingChannel("ann"))], True),
        ([RequestCallbacks(None, RecordingChannel("ann", alone=True))], False),
    ],
)
@pytest.mark.requirement("D14")
async def test_a_message_that_may_be_anothers_is_nobodys(
    others: list[RequestCallbacks | None], taken: bool
) -> None:
    far_end, ann = FarEnd(), RecordingChannel("ann")
    async with Asking(far_end) as asking:
        for number, other in enumerate(others):
            await asking.begin(10 + number, callbacks=other)
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        await asking.begin(99, "subscriptions/listen")
        far_end.say(method="notifications/message", params={"data": 1})
        await settle()
        asking.cancel()
    assert bool(ann.told) == taken
    assert bool(far_end.heard) != taken


@pytest.mark.parametrize(
    "other, method, cancelled, taken",
    [
        (RequestCallbacks(None, RecordingChannel("ben")), "tools/call", False, False),
        (RequestCallbacks(None, RecordingChannel("ben")), "tools/call", True, False),
        (RequestCallbacks(None, RecordingChannel("ann")), "tools/call", True, True),
        (None, "tools/call", False, False),
        (None, "tools/call", True, False),
        (None, "tools/list", False, True),
    ],
)
@pytest.mark.requirement("D14")
async def test_a_message_may_be_of_a_call_that_is_over(
    other: RequestCallbacks | None, method: str, *, cancelled: bool, taken: bool
) -> None:
    """A server works on after a time limit of ours, or in the background."""
    far_end, ann = FarEnd(), RecordingChannel("ann")
    async with Asking(far_end) as before:
        await before.begin(0, method, callbacks=other)
        if cancelled:
            before.cancel()
        else:
            far_end.say(id=1, result={})
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        far_end.say(method="notifications/message", params={"data": 1})
        far_end.say(id=2, result={})
    assert bool(ann.told) == taken


@pytest.mark.requirement("I5")
async def test_queue_of_slow_caller_is_bounded(far_end: FarEnd) -> None:
    ann = RecordingChannel(answer=never)
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        far_end.say(method="notifications/message", params={"data": "x" * MAX_LOG_BYTES})
        far_end.say(method="notifications/message", params={"data": "short"})
        for number in range(9):
            far_end.say(
                id=number, method="elicitation/create", params={"message": "x" * (MAX_QUESTION_BYTES // 4)}
            )
            await settle()
        assert ann.told == [{"data": "short"}]
        assert [each["id"] for each in far_end.replies] == [4, 5, 6, 7, 8]
        asking.cancel()


async def test_message_in_answer_of_other_request_is_discarded() -> None:
    far_end, ann = FarEnd(), RecordingChannel("ann")
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        await asking.begin(1)
        far_end.say(id=1, result={})
        far_end.say(method="notifications/message", params={"data": "the other's"})
        far_end.say(id=2, result={})
    assert not ann.told
    assert len(far_end.heard) == 1
