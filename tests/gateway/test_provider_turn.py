"""A provider's message: all its calls made, side by side or in order, and one reply to each."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.contracts.dialogues import DIALOGUES
from tests.gateway.provider_client import ProviderClient, read, said
from tests.simulated_clock import simulated_clock
from tests.waiting import until
from toolcrib.errors import Failed, Refused
from toolcrib.formats import PROVIDERS
from toolcrib.model import Call, Origin, Progress, Result, Voice
from toolcrib.testing import a_caller, a_tool, echo

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F3")]

NUMBERED = [name for name in PROVIDERS if DIALOGUES[name].ids]
"""Formats whose replies name their call."""
READ, WRITE = a_tool("x:look", category="query"), a_tool("x:write")


def code(reply: Any) -> str | None:
    """The error code in an Anthropic reply."""
    told = json.loads(reply.said)
    return told["error"]["code"] if reply.failed else None


class Gate:
    """Calls that wait until they are let through, in whatever order."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self._opened: dict[str, anyio.Event] = {}

    def open(self, *names: str) -> None:
        for name in names:
            self._opened.setdefault(name, anyio.Event()).set()

    async def __call__(self, call: Call) -> Result:
        name = call.arguments["n"]
        self.begun.append(name)
        try:
            await self._opened.setdefault(name, anyio.Event()).wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(name)
            raise
        self.ended.append(name)
        return Result(data=name)


async def alongside(
    work: Callable[[], Awaitable[None]], client: ProviderClient, *calls: Any, **more: Any
) -> list[Any]:
    """Answer a message while something else happens."""
    found: list[Any] = []

    async def answer() -> None:
        found.extend(await client.replies(*calls, **more))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        await work()
    return found


@pytest.mark.parametrize("format", NUMBERED)
async def test_every_provider_gets_replies_in_its_format(format: str) -> None:
    client = ProviderClient(a_tool("x:echo"), work=echo)
    (reply,) = await client.replies(said("call_1", city="Málaga ☂"), format=format)
    assert (reply.id, reply.failed) == ("call_1", False)
    assert [each.arguments for each in client.calls] == [{"city": "Málaga ☂"}]
    assert client.calls[0].origin.provider == format


@pytest.mark.parametrize("format", [name for name in NUMBERED if DIALOGUES[name].parallel])
async def test_parallel_calls_are_answered_in_order(format: str) -> None:
    client = ProviderClient(a_tool("x:echo", category="query"), work=echo)
    calls = [said(f"call_{place}", n=place) for place in range(20)]
    replies = await client.replies(*calls, format=format)
    assert [each.id for each in replies] == [each.id for each in calls]
    assert not any(each.failed for each in replies)


async def test_one_reply_per_call_for_every_outcome() -> None:
    async def work(call: Call) -> Result:
        match call.arguments["n"]:
            case "raises":
                raise RuntimeError("password=hunter2")
            case "fails":
                raise Failed("TOOL_FAILED", "Not on a Sunday.")
            case "hangs":
                await anyio.sleep_forever()
            case "is cancelled":
                raise anyio.get_cancelled_exc_class()
            case _:
                pass
        return Result(data="fine")

    client = ProviderClient(
        a_tool("x:do", category="query", timeout=0.01),
        a_tool("x:secret", permissions=frozenset({"a:b"})),
        work=work,
    )
    ways = ("is fine", "raises", "fails", "hangs", "is cancelled")
    calls = [said(each, "do", n=each) for each in ways]
    replies = await client.replies(
        *calls, said("unknown", "du"), said("denied", "secret"), said("nameless", ":x")
    )
    assert {each.id: code(each) for each in replies} == {
        "is fine": None,
        "raises": "EXECUTION_ERROR",
        "fails": "TOOL_FAILED",
        "hangs": "TIMEOUT",
        "is cancelled": "CANCELLED",
        "unknown": "TOOL_NOT_FOUND",
        "denied": "PERMISSION_DENIED",
        "nameless": "INVALID_TOOL_NAME",
    }
    assert all("hunter2" not in each.said for each in replies)
    assert client.connection.running == 0


async def test_internal_error_affects_one_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    client = ProviderClient(a_tool("x:echo"), a_tool("x:odd"), work=echo)
    asked = client.gateway.call

    async def call(name: str, *others: Any, **more: Any) -> Result:
        if name == "odd":
            raise ZeroDivisionError
        return await asked(name, *others, **more)

    monkeypatch.setattr(client.gateway, "call", call)
    first, second = await client.replies(said("a"), said("b", "odd"))
    assert (code(first), code(second)) == (None, "EXECUTION_ERROR")


async def test_unreadable_arguments_name_their_path() -> None:
    client = ProviderClient(a_tool("x:echo"), work=echo)
    message = DIALOGUES["deepgram"].asks([said("a"), said("b")])
    message["functions"][0]["arguments"] = '{"city": '
    messages = (await client.connection.turn(message, "deepgram", a_caller())).messages
    first, second = read("deepgram", messages)
    assert (first.failed, second.failed) == (True, False)
    assert json.loads(first.said)["error"]["code"] == "INVALID_ARGUMENTS"
    assert "line 1 column" in first.said
    assert len(client.calls) == 1


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({"deep": json.loads("[" * 80 + "]" * 80)}, "INVALID_ARGUMENTS"),
        ({"long": "x" * (1 << 20)}, "PAYLOAD_TOO_LARGE"),
        ({"large": 1 << 80}, "INVALID_ARGUMENTS"),
    ],
)
async def test_arguments_are_bounded(arguments: dict[str, Any], expected: str) -> None:
    client = ProviderClient(a_tool("x:echo"), work=echo)
    (reply,) = await client.replies(said("a", **arguments))
    assert code(reply) == expected
    assert client.calls == []


async def test_absent_arguments_are_empty() -> None:
    client = ProviderClient(a_tool("x:echo"), work=echo)
    for place, given in enumerate(("", "{}", None)):
        message = DIALOGUES["deepgram"].asks([said(f"call_{place}")])
        message["functions"][0]["arguments"] = given
        (reply,) = read("deepgram", (await client.connection.turn(message, "deepgram", a_caller())).messages)
        assert not reply.failed
    assert [each.arguments for each in client.calls] == [{}, {}, {}]


async def test_message_without_calls_gets_no_reply() -> None:
    client = ProviderClient(a_tool("x:echo"), work=echo)
    turn = await client.turn()
    assert (turn.messages, turn.silent, turn.follow_ups) == ([], False, ())


async def test_invalid_provider_message_is_refused() -> None:
    client = ProviderClient(a_tool("x:echo"), work=echo)
    for message, name, path in (({}, "morse", "format"), ({"content": 5}, "anthropic", "message.content")):
        with pytest.raises(Refused) as refused:
            await client.connection.turn(message, name, a_caller())
        assert (refused.value.problem.code, refused.value.problem.path) == ("INVALID_REQUEST", path)
    assert client.connection.running == 0


# --- in which order ---


async def test_queries_run_in_parallel_and_mutations_in_order() -> None:
    gate = Gate()
    client = ProviderClient(READ, WRITE, a_tool("y:change"), work=gate)
    calls = [
        *(said(n, "write", n=n) for n in ("first", "second")),
        *(said(n, "look", n=n) for n in ("one", "two")),
        said("other", "change", n="other"),
    ]

    async def work() -> None:
        await until(lambda: len(gate.begun) == 4)
        # Mutations wait for other mutations only.
        assert gate.begun == ["first", "one", "two", "other"]
        gate.open("two", "other", "one", "second", "first")

    replies = await alongside(work, client, *calls)
    assert [each.id for each in replies] == ["first", "second", "one", "two", "other"]
    assert gate.begun[-1] == "second"


async def test_mutations_stay_in_order_across_messages() -> None:
    gate = Gate()
    client = ProviderClient(WRITE, work=gate)
    deepgram = DIALOGUES["deepgram"]
    assert deepgram.cancels is not None
    async with anyio.create_task_group() as tasks:
        for n in ("a", "b", "c"):
            message = deepgram.asks([said(n, "write", n=n)])
            tasks.start_soon(client.connection.turn, message, "deepgram", a_caller())
        await until(lambda: client.connection.running == 3)
        assert (await client.connection.turn(deepgram.cancels(["b"]), "deepgram", a_caller())).messages == []
        await until(lambda: client.connection.running == 2)
        assert gate.begun == ["a"]
        gate.open("a", "c")
    assert (gate.begun, gate.ended, gate.cancelled) == (["a", "c"], ["a", "c"], [])


async def test_failed_mutation_does_not_block_the_next() -> None:
    async def work(call: Call) -> Result:
        if call.arguments["n"] == 1:
            raise Failed("TOOL_FAILED", "no")
        return Result(data="yes")

    replies = await ProviderClient(WRITE, work=work).replies(said("a", "write", n=1), said("b", "write", n=2))
    assert [code(each) for each in replies] == ["TOOL_FAILED", None]


# --- how long ---


@simulated_clock
async def test_each_call_has_its_own_deadline() -> None:
    gate = Gate()
    gate.open("quick")
    client = ProviderClient(READ, WRITE, work=gate)
    calls = (
        said("quick", "look", n="quick"),
        said("slow", "look", n="slow"),
        said("change", "write", n="change"),
        said("behind it", "write", n="behind it"),
    )
    replies = await client.replies(*calls, deadline=anyio.current_time() + 0.2)
    assert {each.id: code(each) for each in replies} == {
        "quick": None,
        "slow": "TIMEOUT",
        "change": "OUTCOME_UNKNOWN",
        "behind it": "TIMEOUT",
    }
    assert "nothing was done" in replies[-1].said
    assert "behind it" not in gate.begun


async def test_calls_per_message_are_bounded() -> None:
    client = ProviderClient(READ, work=echo, max_running_calls=3)
    replies = await client.replies(*(said(str(n), "look") for n in range(5)))
    assert [code(each) for each in replies] == [None, None, None, "OVERLOADED", "OVERLOADED"]
    assert json.loads(replies[-1].said)["error"]["retryAfter"] == 1.0
    assert code((await client.replies(said("later", "look")))[0]) is None


async def test_disconnect_cancels_the_calls() -> None:
    gate = Gate()
    client = ProviderClient(READ, WRITE, work=gate)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            client.turn, said("a", "look", n="a"), said("b", "write", n="b"), said("c", "write", n="c")
        )
        await until(lambda: len(gate.begun) == 2)
        tasks.cancel_scope.cancel()
    assert sorted(gate.cancelled) == ["a", "b"]
    assert client.connection.running == 0


# --- what is taken back ---


@pytest.mark.parametrize("format", [name for name in NUMBERED if DIALOGUES[name].cancels])
async def test_cancelled_call_ends_without_reply(format: str) -> None:
    gate, dialogue = Gate(), DIALOGUES[format]
    client = ProviderClient(READ, work=gate)
    names = ("a", "b") if dialogue.parallel else ("b",)

    async def work() -> None:
        await until(lambda: len(gate.begun) == len(names))
        assert dialogue.cancels is not None
        assert (await client.connection.turn(dialogue.cancels(["b"]), format, a_caller())).messages == []
        gate.open("a")

    replies = await alongside(work, client, *(said(n, "look", n=n) for n in names), format=format)
    assert [each.id for each in replies] == [n for n in names if n != "b"]
    assert gate.cancelled == ["b"]


async def test_cancellation_after_the_end_and_before_the_call() -> None:
    gate = Gate()
    client = ProviderClient(READ, work=gate)

    async def work() -> None:
        await until(lambda: len(gate.begun) == 2)
        gate.open("a")
        await until(lambda: client.connection.running == 1)
        client.connection.cancel(["a", "early", ""])
        gate.open("b")

    replies = await alongside(work, client, said("a", "look", n="a"), said("b", "look", n="b"))
    assert [each.id for each in replies] == ["b"]
    assert await client.replies(said("early", "look", n="early")) == []
    assert "early" not in gate.begun


async def test_repeated_call_id_runs_once() -> None:
    client = ProviderClient(READ, work=echo)
    assert len(await client.replies(said("a", "look"), said("a", "look"))) == 2
    assert await client.replies(said("a", "look")) == []
    assert len(await client.replies(said("", "look"), format="gemini_live")) == 1
    assert len((await client.turn(said("", "look"), format="gemini_live")).messages) == 1
    await client.turn(*(said(str(n), "look") for n in range(2_000)))
    assert len(await client.replies(said("a", "look"))) == 1


async def test_close_ends_running_calls() -> None:
    gate = Gate()
    client = ProviderClient(READ, work=gate)

    async def work() -> None:
        await until(lambda: len(gate.begun) == 1)
        await client.connection.close()

    (reply,) = await alongside(work, client, said("a", "look", n="a"))
    assert (code(reply), gate.cancelled) == ("CANCELLED", ["a"])


# --- what a voice needs ---


@pytest.mark.requirement("G4")
async def test_silent_tool_silences_the_turn() -> None:
    async def work(call: Call) -> Result:
        n = call.arguments["n"]
        return Result(data=n, voice=Voice(suppress=n == "b", follow_ups=("Again?", f"{n}?")))

    client = ProviderClient(READ, work=work)
    turn = await client.turn(*(said(n, "look", n=n) for n in ("a", "b")))
    assert turn.silent
    assert turn.follow_ups == ("Again?", "a?", "b?")
    replies = read("anthropic", turn.messages)
    assert all(json.loads(each.said)["suppress_voice_response"] for each in replies)
    assert not (await client.turn(said("c", "look", n="c"))).silent


async def test_calls_of_a_message_share_trace_and_progress() -> None:
    heard: list[Progress] = []

    async def report(progress: Progress) -> None:
        heard.append(progress)

    async def work(call: Call) -> Result:
        assert call.report is not None
        await call.report(Progress(message=call.tool.name))
        return Result(data=1)

    client = ProviderClient(READ, WRITE, work=work)
    await client.turn(said("a", "look"), said("b", "write"), origin=Origin(agent_id="me"), report=report)
    assert sorted(each.message or "" for each in heard) == ["x:look", "x:write"]
    first, second = (each.origin for each in client.calls)
    assert (first.trace_id, first.correlation_id) == (second.trace_id, second.correlation_id)
    assert (first.agent_id, first.provider) == ("me", "anthropic")
