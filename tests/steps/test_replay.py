"""Idempotency keys: a request with a key runs once; its result is stored and replayed."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.steps.replay_steps import CHANGE, CountingHandler, ReplaySteps, code, keyed, replay_steps
from tests.texts import matches
from toolcrib.errors import BusinessRuleError, Failed, Refused, Unavailable, problem
from toolcrib.formats import rest
from toolcrib.interfaces import ReplayRow, ReplayTotals
from toolcrib.model import REPLAYED, Ask, Call, Hints, Problem, Result, Tool, Voice
from toolcrib.steps.replay import MAX_STORED_BYTES, Replay
from toolcrib.testing import a_call, a_caller, a_tool, echo

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E10", "E12")]


def of(result: Result) -> Problem:
    assert result.problem is not None
    return result.problem


@pytest.mark.check(25)
async def test_same_request_with_same_key_runs_once() -> None:
    async with replay_steps() as steps:
        handler = CountingHandler()
        chain = steps.chain(handler)
        first = await chain(keyed(arguments={"a": 1, "b": [2]}))
        again = await chain(keyed(arguments={"b": [2], "a": 1}))
        other = await chain(keyed("k2", arguments={"a": 1, "b": [2]}))
    assert (first.data, first.meta, first.made) == ({"done": 1}, {}, 0.0)
    assert (again.data, again.meta, again.cached) == ({"done": 1}, {REPLAYED: True}, False)
    assert again.made > 0
    assert other.data == {"done": 2}


async def test_replay_returns_the_whole_result() -> None:
    said = Result(
        data={"seat": "4A", "price": 12.5},
        encoded=b'{"seat":"4A","price":12.5}',
        content=({"type": "text", "text": "Seat 4A"},),
        structured=False,
        message="You have seat 4A.",
        voice=Voice(suppress=True, follow_ups=("Print it?",)),
        meta={"vendor/x": [1]},
    )
    async with replay_steps() as steps:
        chain = steps.chain(CountingHandler(said))
        await chain(keyed())
        again = await chain(keyed())
    assert again.replace(made=0.0) == said.replace(meta={"vendor/x": [1], REPLAYED: True})
    assert again.encoded == said.encoded


async def test_a_key_belongs_to_its_caller_and_user() -> None:
    async with replay_steps() as steps:
        chain = steps.chain(CountingHandler())
        told = [
            (await chain(keyed(caller=caller))).data["done"]
            for caller in (
                a_caller(id="key:1"),
                a_caller(id="key:2"),
                a_caller(id="key:1", user="eve"),
                a_caller(id="key:1", context="other"),
            )
        ]
    assert told == [1, 2, 3, 1]


@pytest.mark.parametrize(
    "tool, arguments", [(CHANGE, {"a": 2}), (CHANGE, {}), (replace(CHANGE, name="fake:other"), {"a": 1})]
)
async def test_key_reused_for_another_request_is_mismatch(tool: Tool, arguments: dict[str, int]) -> None:
    async with replay_steps() as steps:
        handler = CountingHandler()
        await steps.chain(handler)(keyed(arguments={"a": 1}))
        refused = await steps.chain(handler, tool)(keyed(tool=tool, arguments=arguments))
    assert (of(refused).code, of(refused).path) == ("IDEMPOTENCY_MISMATCH", "idempotencyKey")
    assert handler.done == 1


async def test_read_only_tools_store_no_key() -> None:
    async with replay_steps() as steps:
        for category in ("query", "analysis"):
            tool = a_tool("fake:ask", category=category)
            assert steps.replay.fit(tool) is None
            assert steps.replay.begin.fit(tool) is None
        handler, query = CountingHandler(), a_tool("fake:ask", category="query")
        chain = steps.chain(handler, query)
        assert [(await chain(keyed(tool=query))).data["done"] for _ in range(2)] == [1, 2]


async def test_call_without_key_does_not_touch_the_store() -> None:
    class NoStore:
        """A store that must not be used."""

    stage = Replay(NoStore(), "here", bool).fit(CHANGE)  # pyright: ignore[reportArgumentType]
    assert stage is not None
    call = a_call(CHANGE, arguments={"a": 1})
    assert (await stage(call, echo)).data == {"a": 1}


async def test_concurrent_call_with_same_key_is_in_progress() -> None:
    started, gate = anyio.Event(), anyio.Event()
    done, meanwhile = list[Result](), list[Result]()

    async def slow(_call: Call) -> Result:
        started.set()
        await gate.wait()
        return Result(data="at last")

    async with replay_steps() as steps:
        chain = steps.chain(slow)

        async def first() -> None:
            done.append(await chain(keyed()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await started.wait()
            meanwhile += [await chain(keyed()) for _ in range(3)]
            meanwhile.append(await chain(keyed(arguments={"a": 1})))
            gate.set()
        after = await chain(keyed())
    *waiting, changed = map(of, meanwhile)
    assert {(each.code, each.retry_after, each.retryable) for each in waiting} == {("IN_PROGRESS", 1.0, True)}
    assert changed.code == "IDEMPOTENCY_MISMATCH"
    assert [done[0].data, after.data] == ["at last", "at last"]


async def test_concurrent_calls_with_one_key_run_once() -> None:
    async with replay_steps() as steps:
        handler, results = CountingHandler(), list[Result]()
        chain = steps.chain(handler)

        async def ask() -> None:
            results.append(await chain(keyed()))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
    assert handler.done == 1
    assert {code(result) for result in results} <= {None, "IN_PROGRESS"}
    assert all(result.data == {"done": 1} for result in results if result.problem is None)


KEPT = [
    Failed("HANDLER_ERROR", "it raised"),
    Failed("TOOL_FAILED", "no", tool_code="NO", details={"a": 1}),
    BusinessRuleError("FULL", "there is no room"),
]
FREED = [
    Refused("INVALID_ARGUMENTS", "a day that is none", path="arguments.day"),
    Refused("OVERLOADED", "busy", retry_after=1.0),
    Unavailable("NETWORK_ERROR", "nothing was sent"),
    Unavailable("HTTP_ERROR", "404", retryable=False),
    BusinessRuleError("CLOSED", "come back at nine", retryable=True),
]


@pytest.mark.parametrize("error", KEPT, ids=lambda error: error.problem.code)
async def test_permanent_failure_is_replayed(error: Failed) -> None:
    async with replay_steps() as steps:
        handler = CountingHandler(error)
        chain = steps.chain(handler)
        first, again = await chain(keyed()), await chain(keyed())
    assert first.problem == again.problem == error.problem
    assert (handler.done, again.meta) == (1, {REPLAYED: True})


@pytest.mark.parametrize("error", FREED, ids=lambda error: error.problem.code)
async def test_retryable_failure_frees_the_key(error: Failed) -> None:
    async with replay_steps() as steps:
        handler = CountingHandler(error)
        chain = steps.chain(handler)
        first, again = await chain(keyed()), await chain(keyed())
    assert first.problem == error.problem
    assert again.data == {"done": 2}


async def test_hints_of_a_failure_are_replayed() -> None:
    hints = Hints(confidence=0.5, reasoning="there is no room", context_needed=("how many will come",))
    async with replay_steps() as steps:
        chain = steps.chain(CountingHandler(BusinessRuleError("FULL", "there is no room", hints=hints)))
        await chain(keyed())
        again = await chain(keyed())
    assert again.hints is not None
    assert again.hints.as_json() == hints.as_json()


@pytest.mark.parametrize("retryable, done", [(False, 1), (True, 2)])
async def test_failed_result_frees_the_key_if_retryable(retryable: bool, done: int) -> None:
    text = ({"type": "text", "text": "no such row"},)
    failure = Result(problem=problem("TOOL_FAILED", "no such row", retryable=retryable), content=text)
    async with replay_steps() as steps:
        handler = CountingHandler(failure, failure)
        chain = steps.chain(handler)
        first, again = await chain(keyed()), await chain(keyed())
    assert (handler.done, again.problem, again.content) == (done, first.problem, text)


async def test_question_frees_the_key_for_the_answer() -> None:
    ask = Ask(questions={"q": {"method": "elicitation/create", "params": {"message": "Sure?"}}}, state="s")
    async with replay_steps() as steps:
        chain = steps.chain(CountingHandler(Result(ask=ask)))
        first = await chain(keyed())
        answered = await chain(keyed(answers={"q": {"action": "accept"}}, state="s"))
        again = await chain(keyed())
    assert first.ask == ask
    assert (answered.data, again.data) == ({"done": 2}, {"done": 2})


async def test_large_answer_is_replayed_as_result_too_large() -> None:
    large = Result(data="x" * MAX_STORED_BYTES)
    async with replay_steps() as steps:
        handler = CountingHandler(large)
        chain = steps.chain(handler)
        first, again = await chain(keyed()), await chain(keyed())
    assert first.data == large.data
    assert of(again).code == "RESULT_TOO_LARGE"
    assert handler.done == 1


async def test_non_json_answer_is_replayed_as_violation() -> None:
    odd = Result(problem=problem("TOOL_FAILED", "no"), content=({"type": "text", "text": "\ud800"},))
    async with replay_steps() as steps:
        handler = CountingHandler(odd)
        chain = steps.chain(handler)
        first, again = await chain(keyed()), await chain(keyed())
    assert (code(first), code(again), handler.done) == ("TOOL_FAILED", "CONTRACT_VIOLATION", 1)


async def test_non_json_arguments_are_compared() -> None:
    async with replay_steps() as steps:
        chain = steps.chain(CountingHandler())
        await chain(keyed(arguments={"n": 2**70, "when": frozenset({1}), "text": "\ud800"}))
        assert code(await chain(keyed(arguments={"n": 2**70 + 1}))) == "IDEMPOTENCY_MISMATCH"


# --- with keys in memory ---


class MemoryKeys:
    """Keys in memory; every operation yields once."""

    def __init__(self) -> None:
        self.rows: dict[str, ReplayRow] = {}
        self.down = False

    async def claim(self, row: ReplayRow, *, since: float) -> ReplayRow | None:
        await checkpoint()
        found = self.rows.setdefault(row.key, row)
        return None if found is row else found

    async def find(self, key: str, *, since: float) -> ReplayRow | None:
        raise AssertionError(key)

    async def shorten(self, owner: str, size: int, answer: str) -> int:
        raise AssertionError(owner)

    async def totals(self) -> Mapping[str, ReplayTotals]:
        raise AssertionError

    async def finish(self, key: str, call: str, answer: str, size: int = 0) -> bool:
        await checkpoint()
        if self.down:
            raise Unavailable("NETWORK_ERROR", "the store is gone")
        self.rows[key] = replace(self.rows[key], answer=answer)
        return True

    async def release(self, key: str, call: str) -> bool:
        await checkpoint()
        return self.rows.pop(key, None) is not None

    async def prune(self, before: float) -> int:
        raise AssertionError(before)

    @property
    def row(self) -> ReplayRow:
        """The only one."""
        (found,) = self.rows.values()
        return found


class MemoryReplay:
    """The replay step over keys in memory."""

    def __init__(self) -> None:
        self.keys = MemoryKeys()
        self.replay_steps = ReplaySteps(self.keys)

    async def call(self, handler: CountingHandler, **fields: Any) -> Result:
        return await self.replay_steps.chain(handler)(keyed(**fields))


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


def said(result: Result) -> str:
    assert result.problem is not None
    return result.problem.message


async def test_mismatch_message_says_what_to_do() -> None:
    memory = MemoryReplay()
    await memory.call(CountingHandler(), arguments={"a": 1})
    other = await memory.call(CountingHandler(), arguments={"a": 2})
    assert code(other) == "IDEMPOTENCY_MISMATCH"
    assert matches("errors", "idempotency key of another request", said(other))


@pytest.mark.parametrize(
    "holder, until, ended",
    [("there", 60.0, "IN_PROGRESS"), ("there", -1.0, "OUTCOME_UNKNOWN"), ("gone", 60.0, "OUTCOME_UNKNOWN")],
)
async def test_call_of_another_process_is_in_progress_or_unknown(
    holder: str, until: float, ended: str
) -> None:
    memory = MemoryReplay()
    memory.replay_steps.gone.add("gone")
    await memory.call(CountingHandler())
    memory.keys.rows[memory.keys.row.key] = replace(
        memory.keys.row, answer=None, holder=holder, until=memory.replay_steps.replay.clock.now() + until
    )
    again = await memory.call(CountingHandler())
    assert code(again) == ended
    assert matches("errors", f"{ended} of an idempotency key", said(again))


async def test_cancelled_running_call_is_stored_as_unknown() -> None:
    memory = MemoryReplay()
    with anyio.move_on_after(0.01):
        await memory.replay_steps.chain(hang)(keyed())
    assert memory.keys.row.answer is not None
    found = rest.decode_stored(memory.keys.row.answer)
    assert code(found) == "OUTCOME_UNKNOWN"
    assert matches("errors", "OUTCOME_UNKNOWN of a cancelled call", said(found))


async def test_cancelled_unsent_call_frees_its_key() -> None:
    memory = MemoryReplay()
    stage = memory.replay_steps.replay.fit(CHANGE)
    assert stage is not None
    with anyio.move_on_after(0.01):
        await stage(keyed(), hang)
    assert memory.keys.rows == {}
    assert (await memory.call(CountingHandler())).data == {"done": 1}


async def test_failing_store_is_logged_and_the_answer_returned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = MemoryReplay()
    memory.keys.down = True
    call = keyed()
    with caplog.at_level(logging.WARNING):
        assert (await memory.replay_steps.chain(CountingHandler())(call)).data == {"done": 1}
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.__dict__["call_id"] == call.id


async def test_hanging_store_does_not_delay_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(key: str, call: str, answer: str, size: int) -> bool:
        await anyio.sleep_forever()
        return False

    memory = MemoryReplay()
    monkeypatch.setattr(memory.keys, "finish", never)
    monkeypatch.setattr("toolcrib.steps.replay.MAX_INLINE_SECONDS", 0.01)
    with anyio.fail_after(5):
        assert (await memory.call(CountingHandler())).data == {"done": 1}


async def test_call_is_passed_on_unchanged() -> None:
    memory, seen = MemoryReplay(), list[Call]()

    async def look(call: Call) -> Result:
        seen.append(call)
        return Result(data=1)

    call = keyed()
    await memory.replay_steps.chain(look)(call)
    plain = replace(call, idempotency_key="")
    await memory.replay_steps.chain(look)(plain)
    assert [each.idempotency_key for each in seen] == [call.idempotency_key, ""]


def fitting(size: int) -> Result:
    """A result whose stored form has this size."""
    empty = len(rest.encode_stored(Result(data="")))
    return Result(data="x" * (size - empty))


@pytest.mark.parametrize(
    "result, ended",
    [
        (Result(data=object()), "CONTRACT_VIOLATION"),
        (fitting(MAX_STORED_BYTES), None),
        (fitting(MAX_STORED_BYTES + 1), "RESULT_TOO_LARGE"),
    ],
    ids=["no JSON", "just fits", "too large"],
)
async def test_unstorable_answer_is_stored_as_carried_out(result: Result, ended: str | None) -> None:
    memory = MemoryReplay()
    await memory.call(CountingHandler(result))
    handler = CountingHandler()
    again = await memory.call(handler)
    assert (code(again), handler.done) == (ended, 0)
    if ended is not None:
        assert matches("errors", f"{ended} of a stored answer", said(again))
