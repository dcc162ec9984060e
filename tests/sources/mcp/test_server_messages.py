"""What a server asks and says reaches the caller it belongs to, or nobody."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.mcp.far_end import Asking, FarEnd, settle
from tests.sources.mcp.recording_channel import ALL, FORM, RecordingChannel, never, refusing
from tests.waiting import until
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import MAX_QUESTION_BYTES, ConnectionLost, RequestCallbacks
from toolcrib.sources.mcp.server_messages import MAX_PENDING_QUESTIONS

pytestmark = pytest.mark.anyio

ELICIT = "elicitation/create"
OVER = {"code": -32000, "message": "the call this was asked in is over"}


@pytest.fixture
def far_end() -> FarEnd:
    """A server whose questions are relayed."""
    far_end = FarEnd()
    far_end.exchange.relay(ALL)
    return far_end


@pytest.mark.requirement("D14")
async def test_question_reaches_caller_and_answer_reaches_server(far_end: FarEnd) -> None:
    ann = RecordingChannel()
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        assert far_end.sent[0]["params"] == {"number": 0}
        meta = {"progressToken": 1, "io.modelcontextprotocol/x": 1, "vendor/x": {"y": 2}}
        far_end.say(id="a", method=ELICIT, params={**FORM, "_meta": meta})
        far_end.say(id=7, method="roots/list")
        await settle()
        far_end.say(id=1, result={"ok": 1})
    assert ann.questions == [(ELICIT, {**FORM, "_meta": {"vendor/x": {"y": 2}}}), ("roots/list", {})]
    said = {"action": "accept", "content": {"name": "ann"}}
    assert [(each["id"], each["result"]) for each in far_end.answers] == [("a", said), (7, said)]
    assert asking.ended == {0: {"ok": 1}}
    assert not far_end.replies


@pytest.mark.requirement("D14")
async def test_declined_question_is_returned_unchanged(far_end: FarEnd) -> None:
    ann = RecordingChannel(answer=refusing(-1, "the user said no"))
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        far_end.say(id="a", method="sampling/createMessage", params={})
        await settle()
        far_end.say(id=1, result={})
    assert [each["error"] for each in far_end.answers] == [{"code": -1, "message": "the user said no"}]


@pytest.mark.requirement("D14")
async def test_undeclared_capability_is_not_requested(far_end: FarEnd) -> None:
    far_end.exchange.relay({"elicitation": {}})
    ann = RecordingChannel()
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        for number, method in enumerate(["roots/list", "sampling/createMessage", "tasks/get", "ping"]):
            far_end.say(id=number, method=method, params={})
        far_end.say(id=9, method=ELICIT, params={"mode": "url"})
        await settle()
        asking.cancel()
    assert [each.get("error", {}).get("code") for each in far_end.replies[:5]] == [-32601] * 3 + [
        None,
        -32602,
    ]
    assert not ann.questions


async def test_without_relay_no_question_is_asked() -> None:
    far_end, ann = FarEnd(), RecordingChannel()
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        for number, method in enumerate([ELICIT, "roots/list", "sampling/createMessage"]):
            far_end.say(id=number, method=method, params={})
        await settle()
        far_end.say(id=1, result={})
    assert [each.get("result") for each in far_end.replies] == [{"action": "decline"}, {"roots": []}, None]
    assert not ann.questions


@pytest.mark.requirement("D14")
async def test_withdrawn_question_ends(far_end: FarEnd) -> None:
    ann = RecordingChannel(answer=never)
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        for name in ("a", "b", "c"):
            far_end.say(id=name, method=ELICIT, params={"message": name})
        await settle()
        assert len(ann.questions) == 1
        for taken_back in ("b", "a", "a", "x", None, [1]):
            far_end.say(method="notifications/cancelled", params={"requestId": taken_back})
        await settle()
        assert ann.given_up == 1
        assert [params["message"] for _, params in ann.questions] == ["a", "c"]
        far_end.say(id=1, result={})
    assert ann.given_up == 2
    assert [(each["id"], each["error"]) for each in far_end.replies] == [("c", OVER)]
    assert not far_end.answers


async def test_an_answer_ends_the_questions_of_its_call(far_end: FarEnd) -> None:
    slow, quick = RecordingChannel(answer=never), RecordingChannel("ben")
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, slow))
        for name in ("a", "b"):
            far_end.say(id=name, method=ELICIT, params=FORM)
        await settle()
        far_end.say(id=1, error={"code": 1, "message": "too late"})
        await settle()
        assert asking.ended
        await asking.begin(1, callbacks=RequestCallbacks(None, quick))
        far_end.say(id="a", method=ELICIT, params=FORM)
        await settle()
        far_end.say(id=2, result={})
    assert [(each["id"], each["error"]) for each in far_end.replies] == [("a", OVER), ("b", OVER)]
    assert [each["id"] for each in far_end.answers] == ["a"]
    assert len(quick.questions) == 1


@pytest.mark.parametrize("event", ["cancel", "lose"])
@pytest.mark.parametrize("method", [ELICIT, "roots/list"])
async def test_call_ending_during_question_leaves_no_state(far_end: FarEnd, event: str, method: str) -> None:
    ann = RecordingChannel(answer=never)
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        far_end.say(id="a", method=method, params=FORM)
        await settle()
        if event == "cancel":
            asking.scopes[0].cancel()
        else:
            far_end.exchange.close(ConnectionLost("gone"))
    assert ann.given_up == 1
    if event == "cancel":
        assert far_end.replies[0]["error"] == OVER
        assert far_end.replies[1]["method"] == "notifications/cancelled"
    else:
        assert isinstance(asking.ended[0], ConnectionLost)
        assert not far_end.answers


async def test_an_answer_the_server_never_got_ends_the_call(far_end: FarEnd) -> None:
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, RecordingChannel()))
        far_end.broken = True
        far_end.say(id="a", method=ELICIT, params=FORM)
    assert isinstance(asking.ended[0], ConnectionLost)


@pytest.mark.requirement("I5")
async def test_too_many_questions_are_refused(far_end: FarEnd) -> None:
    ann = RecordingChannel(answer=never)
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        for number in range(100):
            far_end.say(id=number, method=ELICIT, params=FORM)
            await anyio.lowlevel.checkpoint()
        await settle()
        assert len(far_end.replies) == 100 - MAX_PENDING_QUESTIONS - 1
        asking.cancel()
    assert len(ann.questions) == 1


@pytest.mark.requirement("I5")
async def test_a_question_has_a_size_and_an_id(far_end: FarEnd) -> None:
    ann = RecordingChannel(answer=never)
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        far_end.say(id="large", method=ELICIT, params={"message": "x" * MAX_QUESTION_BYTES})
        for name in (None, True, 1.5, [1], {"a": 1}, "x" * 300):
            far_end.say(id=name, method=ELICIT, params=FORM)
        far_end.say(id="a", method=ELICIT, params=[1])
        far_end.say(id="a", method=ELICIT, params={"message": "the same id again"})
        await settle()
        assert ann.questions == [(ELICIT, {})]
        assert [each["id"] for each in far_end.replies] == ["large"]
        assert far_end.replies[0]["error"]["code"] == -32602
        asking.cancel()


async def test_question_after_handshake_waits_for_first_call(far_end: FarEnd) -> None:
    ann = RecordingChannel()
    far_end.say(id="a", method="roots/list")
    far_end.say(id="b", method="roots/list")
    far_end.say(method="notifications/cancelled", params={"requestId": "b"})
    for number in range(MAX_PENDING_QUESTIONS):
        far_end.say(id=number, method=ELICIT, params=FORM)
    assert len(far_end.replies) == 1
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        await until(lambda: len(far_end.answers) == MAX_PENDING_QUESTIONS)
        far_end.say(id=1, result={})
    assert ann.questions[0] == ("roots/list", {})
    assert len(ann.questions) == MAX_PENDING_QUESTIONS
    far_end.say(id="late", method="roots/list")
    assert far_end.replies[-1]["id"] == "late"
    assert far_end.replies[-1]["error"]["code"] == -32000


async def test_question_for_all_calls_outlives_the_first_result(
    far_end: FarEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, slow = RecordingChannel(), RecordingChannel(answer=never)
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, ann))
        for number in range(2):
            far_end.say(id=f"roots {number}", method="roots/list")
        far_end.say(id="form", method=ELICIT, params=FORM)
        far_end.say(id=1, result={})
        await until(lambda: bool(asking.ended))
        monkeypatch.setattr("toolcrib.sources.mcp.server_messages.ANSWER_GRACE_SECONDS", 0.01)
        await asking.begin(1, callbacks=RequestCallbacks(None, slow))
        far_end.say(id="more", method="roots/list")
        await settle()
        far_end.say(id=2, result={})
    assert [each["id"] for each in far_end.answers] == ["roots 0", "roots 1"]
    assert [each["id"] for each in far_end.replies] == ["form", "more"]
    assert ann.questions == [("roots/list", {})] * 2
    assert slow.given_up == 1


async def test_question_goes_to_newest_capable_call(far_end: FarEnd) -> None:
    first, second = RecordingChannel(), RecordingChannel()
    async with Asking(far_end) as asking:
        await asking.begin(0, callbacks=RequestCallbacks(None, first))
        await asking.begin(1, callbacks=RequestCallbacks(None, second))
        await asking.begin(2)
        far_end.say(id="a", method=ELICIT, params=FORM)
        await settle()
        far_end.say(id=2, result={})
        await settle()
        far_end.say(id="b", method=ELICIT, params=FORM)
        await settle()
        asking.cancel()
    assert (len(first.questions), len(second.questions)) == (1, 1)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["begin", "ask", "withdraw", "answer", "cancel", "reply"]), st.integers(0, 5)
        ),
        max_size=40,
    )
)
async def test_every_question_ends_once_with_its_own_answer(
    events: list[tuple[str, int]],
) -> None:
    far_end = FarEnd()
    far_end.exchange.relay(ALL)
    gates = {number: anyio.Event() for number in range(6)}
    asked: set[str] = set()

    async def answer(_method: str, params: JsonObject) -> JsonObject:
        await gates[params["gate"]].wait()
        return {"to": params["name"]}

    async with Asking(far_end) as asking:
        for turn, (event, number) in enumerate(events):
            if event == "begin":
                await asking.begin(turn, callbacks=RequestCallbacks(None, RecordingChannel(answer=answer)))
            elif event == "cancel":
                asking.scopes.get(number, anyio.CancelScope()).cancel()
            elif event == "reply":
                gates[number].set()
            else:
                ask_or_not(far_end, event, number, asked)
            await settle()
        far_end.exchange.close(ConnectionLost("over"))
    ends = [each["id"] for each in (*far_end.answers, *far_end.replies) if "id" in each]
    assert len(ends) == len(set(ends))
    assert set(ends) <= asked
    assert all(each["result"] == {"to": each["id"]} for each in far_end.answers)


def ask_or_not(far_end: FarEnd, event: str, number: int, asked: set[str]) -> None:
    name = f"q{number}"
    if event == "answer":
        far_end.say(id=number + 1, result={})
    elif event == "withdraw":
        far_end.say(method="notifications/cancelled", params={"requestId": name})
    elif name not in asked:
        asked.add(name)
        far_end.say(id=name, method=ELICIT, params={"name": name, "gate": number})


# Messages
