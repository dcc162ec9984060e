"""Every answer finds the one who asked, in any order, and nothing else a server says does harm."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.mcp.far_end import Asking, FarEnd, Message, settle
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    InvalidResponse,
    JsonRpcError,
    NotSent,
    ResponseTooLarge,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def far_end() -> FarEnd:
    return FarEnd()


async def ended(far_end: FarEnd, act: Callable[[], object], method: str = "tools/call") -> Any:
    """Make one request, let something happen, return how the request ended."""
    async with Asking(far_end) as asking:
        await asking.begin(0, method)
        act()
        await settle()
        asking.cancel()
    return asking.ended.get(0)


async def test_a_request_is_sent_once_and_its_result_comes_back(far_end: FarEnd) -> None:
    result = await ended(far_end, lambda: far_end.say(id=1, result={"ok": True}))
    assert result == {"ok": True}
    assert far_end.sent == [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"number": 0}}]
    assert not far_end.replies


@given(order=st.permutations(range(8)), together=st.booleans())
async def test_answers_may_come_in_any_order(order: list[int], together: bool) -> None:
    far_end = FarEnd()
    async with Asking(far_end) as asking:
        for number in range(8):
            await asking.begin(number)
        answers: list[Message] = [
            {"jsonrpc": "2.0", "id": far_end.sent[number]["id"], "result": {"number": number}}
            for number in order
        ]
        for data in [answers] if together else answers:
            far_end.exchange.feed(orjson.dumps(data))
    assert asking.ended == {number: {"number": number} for number in range(8)}
    assert not far_end.expected()


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5), st.sampled_from(["answer", "refuse", "cancel", "spoil", "wrong", "noise"])
        )
    )
)
async def test_every_request_ends_exactly_once_and_leaves_no_state(
    events: list[tuple[int, str]],
) -> None:
    far_end = FarEnd()
    open_ones = set(range(6))
    expected: dict[int, Any] = {}
    async with Asking(far_end) as asking:
        for number in range(6):
            await asking.begin(number)
        for number, event in events:
            happen(far_end, asking, number, event)
            await settle()
            if number in open_ones and event not in {"wrong", "noise"}:
                open_ones.discard(number)
                expected[number] = event
        far_end.exchange.close(ConnectionLost("over"))
        await settle()
    kinds = {"answer": dict, "refuse": JsonRpcError, "spoil": ResponseTooLarge}
    for number, event in expected.items():
        assert (
            (number not in asking.ended)
            if event == "cancel"
            else isinstance(asking.ended[number], kinds[event])
        )
    assert all(isinstance(asking.ended[number], ConnectionLost) for number in open_ones)
    assert not far_end.expected()
    cancelled = [message["params"]["requestId"] - 1 for message in far_end.replies]
    assert cancelled == [number for number, event in expected.items() if event == "cancel"]


def happen(far_end: FarEnd, asking: Asking, number: int, event: str) -> None:
    if event == "answer":
        far_end.say(id=number + 1, result={})
    elif event == "refuse":
        far_end.say(id=number + 1, error={"code": 1, "message": "no"})
    elif event == "cancel":
        asking.scopes[number].cancel()
    elif event == "spoil":
        far_end.exchange.fail(number + 1, ResponseTooLarge("too large"))
    elif event == "wrong":
        far_end.say(id=number + 100, result={})
    else:
        with pytest.raises(InvalidResponse):
            far_end.exchange.feed(b"noise")


async def test_error_response_keeps_code_message_and_data(far_end: FarEnd) -> None:
    error = {"code": -32602, "message": "bad " + "x" * 5_000, "data": {"why": 1}}
    fault = await ended(far_end, lambda: far_end.say(id=1, error=error))
    assert isinstance(fault, JsonRpcError)
    assert (fault.code, fault.data, len(str(fault))) == (-32602, {"why": 1}, 2_000)


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"result":[]}',
        b'{"jsonrpc":"2.0","id":1,"result":null}',
        b'{"jsonrpc":"2.0","id":1,"error":"no"}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}',
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 5_000,
        b'{"result":{"a":NaN},"id":1}',
    ],
    ids=lambda data: repr(data[-14:]),
)
async def test_an_answer_that_cannot_be_used_ends_its_request_at_once(far_end: FarEnd, data: bytes) -> None:
    assert isinstance(await ended(far_end, lambda: far_end.exchange.feed(data)), InvalidResponse)


@pytest.mark.parametrize("id", [7, 0, -1, None, "1", 1.0, True, [1], {"a": 1}, 2**70])
async def test_unmatched_answers_are_counted_and_dropped(far_end: FarEnd, id: Any) -> None:
    def act() -> None:
        far_end.exchange.feed(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % spelled(id))

    assert await ended(far_end, act) is None
    assert far_end.exchange.unclaimed == 1


def spelled(value: Any) -> bytes:
    return str(value).encode() if isinstance(value, int) and value > 2**64 else orjson.dumps(value)


@pytest.mark.parametrize(
    "data",
    [
        b"words",
        b'"text"',
        b"{}",
        b'{"level":"info","msg":"up"}',
        b'{"id":1,"msg":"up"}',
        b'{"method":7}',
        b'{"jsonrpc":"2.0","id":9,"result":NaN}',
    ],
)
async def test_invalid_message_is_reported_without_ending_requests(far_end: FarEnd, data: bytes) -> None:
    def act() -> None:
        with pytest.raises(InvalidResponse):
            far_end.exchange.feed(data)

    assert await ended(far_end, act) is None


async def test_a_bad_message_in_a_list_does_not_spoil_the_others(far_end: FarEnd) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"ok": 1}}
    assert await ended(far_end, lambda: far_end.exchange.feed(orjson.dumps([7, {}, answer]))) == {"ok": 1}
    assert far_end.exchange.unclaimed == 2


async def test_server_requests_are_refused_without_a_user(far_end: FarEnd) -> None:
    methods = ["ping", "roots/list", "elicitation/create", "sampling/createMessage", "x"]
    for number, method in enumerate(methods):
        far_end.say(id=number, method=method, params={})
    *answers, sampling, unknown = far_end.replies
    assert [answer["result"] for answer in answers] == [{}, {"roots": []}, {"action": "decline"}]
    assert sampling["error"]["code"] == unknown["error"]["code"] == -32601
    assert "'sampling/createMessage'" in sampling["error"]["message"]
    assert [answer["id"] for answer in far_end.replies] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("id", [None, 1.5, {}, "x" * 300])
async def test_a_request_without_a_proper_id_is_not_answered(far_end: FarEnd, id: Any) -> None:
    far_end.say(id=id, method="ping")
    assert not far_end.replies


async def test_without_second_channel_cancellation_uses_the_only_one() -> None:
    far_end = FarEnd(polite=False)
    far_end.say(id="a", method="ping")
    assert far_end.sent == [{"jsonrpc": "2.0", "id": "a", "result": {}}]


async def test_cancellation_error_on_broken_channel_is_ignored(far_end: FarEnd) -> None:
    far_end.broken = True
    far_end.say(id="a", method="ping")
    assert not far_end.replies


async def test_notifications_are_delivered(far_end: FarEnd) -> None:
    far_end.say(method="notifications/tools/list_changed")
    far_end.say(method="notifications/message", params={"data": 1})
    far_end.say(method="notifications/message", params=[1])
    assert far_end.heard == [
        ("notifications/tools/list_changed", {}),
        ("notifications/message", {"data": 1}),
        ("notifications/message", {}),
    ]


@pytest.mark.requirement("C4")
async def test_abandoned_request_is_cancelled_at_the_server(far_end: FarEnd) -> None:
    assert await ended(far_end, lambda: None) is None
    (cancelled,) = far_end.replies
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"requestId": 1, "reason": "the caller no longer waits"}
    far_end.say(id=1, result={})
    assert far_end.exchange.unclaimed == 1


async def test_a_handshake_is_never_cancelled(far_end: FarEnd) -> None:
    await ended(far_end, lambda: None, method="initialize")
    assert not far_end.replies


async def test_no_cancellation_is_sent_on_closed_connection(far_end: FarEnd) -> None:
    def breaks() -> None:
        far_end.broken = True

    await ended(far_end, breaks)
    far_end.broken = False
    await ended(far_end, lambda: far_end.exchange.close(ConnectionLost("it exited")))
    assert not far_end.replies


async def test_an_answer_and_a_cancellation_at_once_leave_no_trace(far_end: FarEnd) -> None:
    async with Asking(far_end) as asking:
        for number in range(3):
            await asking.begin(number)
        far_end.say(id=1, error={"code": 1, "message": "no"})
        asking.scopes[0].cancel()
        asking.scopes[1].cancel()
        far_end.say(id=2, result={})
        far_end.exchange.close(ConnectionLost("it exited"))
        asking.scopes[2].cancel()
    assert not far_end.replies
    assert not far_end.expected()


async def test_the_end_ends_all_and_nothing_is_sent_any_more(far_end: FarEnd) -> None:
    async with Asking(far_end) as asking:
        for number in range(3):
            await asking.begin(number)
        far_end.exchange.close(ConnectionLost("it exited with status 1"))
        far_end.exchange.close(ConnectionLost("again"))
    assert [(type(fault), str(fault)) for fault in asking.ended.values()] == [
        (ConnectionLost, "it exited with status 1")
    ] * 3
    with pytest.raises(NotSent, match="status 1"):
        await far_end.exchange.request("tools/call", b"{}")
    with pytest.raises(NotSent, match="status 1"):
        far_end.exchange.notify("notifications/initialized", b"{}")
    far_end.say(id="a", method="ping")
    assert len(far_end.sent) == 3
    assert not far_end.replies


async def test_a_request_that_cannot_be_sent_is_not_kept(far_end: FarEnd) -> None:
    far_end.broken = True
    with pytest.raises(NotSent, match="broken"):
        await far_end.exchange.request("tools/call", b"{}")
    assert not far_end.expected()


async def test_a_notification_is_sent(far_end: FarEnd) -> None:
    far_end.exchange.notify("notifications/initialized", b"{}")
    assert far_end.sent == [{"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}]
