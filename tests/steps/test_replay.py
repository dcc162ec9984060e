"""A request with a key is carried out once: what is claimed, compared, kept and told."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.steps.keyed import CHANGE, Counter, Doer, code, counter, keyed
from toolcrib.errors import BusinessRuleError, Failed, Refused, Unavailable, problem
from toolcrib.formats import stored_results
from toolcrib.interfaces import ReplayRow, ReplayTotals
from toolcrib.model import REPLAYED, Ask, Call, Hints, Problem, Result, Tool, Voice
from toolcrib.steps.replay import LARGEST, Replay
from toolcrib.testing import a_call, a_caller, a_tool, echo

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E10", "E12")]


def of(result: Result) -> Problem:
    assert result.problem is not None
    return result.problem


@pytest.mark.check(25)
async def test_the_same_request_under_the_same_key_is_carried_out_once() -> None:
    async with counter() as desk:
        doer = Doer()
        chain = desk.chain(doer)
        first = await chain(keyed(arguments={"a": 1, "b": [2]}))
        again = await chain(keyed(arguments={"b": [2], "a": 1}))
        other = await chain(keyed("k2", arguments={"a": 1, "b": [2]}))
    assert (first.data, first.meta, first.made) == ({"done": 1}, {}, 0.0)
    assert (again.data, again.meta, again.cached) == ({"done": 1}, {REPLAYED: True}, False)
    assert again.made > 0
    assert other.data == {"done": 2}


async def test_everything_a_tool_said_is_told_again() -> None:
    said = Result(
        data={"seat": "4A", "price": 12.5},
        encoded=b'{"seat":"4A","price":12.5}',
        content=({"type": "text", "text": "Seat 4A"},),
        structured=False,
        message="You have seat 4A.",
        voice=Voice(suppress=True, follow_ups=("Print it?",)),
        meta={"vendor/x": [1]},
    )
    async with counter() as desk:
        chain = desk.chain(Doer(said))
        await chain(keyed())
        again = await chain(keyed())
    assert again.replace(made=0.0) == said.replace(meta={"vendor/x": [1], REPLAYED: True})
    assert again.encoded == said.encoded


async def test_a_key_belongs_to_its_caller_and_user() -> None:
    async with counter() as desk:
        chain = desk.chain(Doer())
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
async def test_a_key_that_was_used_for_something_else_is_refused(
    tool: Tool, arguments: dict[str, int]
) -> None:
    async with counter() as desk:
        doer = Doer()
        await desk.chain(doer)(keyed(arguments={"a": 1}))
        refused = await desk.chain(doer, tool)(keyed(tool=tool, arguments=arguments))
    assert (of(refused).code, of(refused).path) == ("IDEMPOTENCY_MISMATCH", "idempotencyKey")
    assert doer.done == 1


async def test_what_changes_nothing_keeps_no_key() -> None:
    async with counter() as desk:
        for category in ("query", "analysis"):
            tool = a_tool("fake:ask", category=category)
            assert desk.replay.fit(tool) is None
            assert desk.replay.begin.fit(tool) is None
        doer, query = Doer(), a_tool("fake:ask", category="query")
        chain = desk.chain(doer, query)
        assert [(await chain(keyed(tool=query))).data["done"] for _ in range(2)] == [1, 2]


async def test_a_call_without_a_key_passes_as_it_is() -> None:
    class NoStore:
        """Nobody may ask it anything."""

    stage = Replay(NoStore(), "here", bool).fit(CHANGE)  # pyright: ignore[reportArgumentType]
    assert stage is not None
    call = a_call(CHANGE, arguments={"a": 1})
    assert (await stage(call, echo)).data == {"a": 1}


async def test_while_one_runs_the_others_are_told_to_come_back() -> None:
    started, gate = anyio.Event(), anyio.Event()
    done, meanwhile = list[Result](), list[Result]()

    async def slow(_call: Call) -> Result:
        started.set()
        await gate.wait()
        return Result(data="at last")

    async with counter() as desk:
        chain = desk.chain(slow)

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


async def test_of_many_at_once_one_is_carried_out() -> None:
    async with counter() as desk:
        doer, results = Doer(), list[Result]()
        chain = desk.chain(doer)

        async def ask() -> None:
            results.append(await chain(keyed()))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
    assert doer.done == 1
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
async def test_a_failure_that_stays_one_is_told_again(error: Failed) -> None:
    async with counter() as desk:
        doer = Doer(error)
        chain = desk.chain(doer)
        first, again = await chain(keyed()), await chain(keyed())
    assert first.problem == again.problem == error.problem
    assert (doer.done, again.meta) == (1, {REPLAYED: True})


@pytest.mark.parametrize("error", FREED, ids=lambda error: error.problem.code)
async def test_what_was_not_done_or_may_be_tried_again_frees_the_key(error: Failed) -> None:
    async with counter() as desk:
        doer = Doer(error)
        chain = desk.chain(doer)
        first, again = await chain(keyed()), await chain(keyed())
    assert first.problem == error.problem
    assert again.data == {"done": 2}


async def test_hints_of_a_failure_are_told_again() -> None:
    hints = Hints(confidence=0.5, reasoning="there is no room", context_needed=("how many will come",))
    async with counter() as desk:
        chain = desk.chain(Doer(BusinessRuleError("FULL", "there is no room", hints=hints)))
        await chain(keyed())
        again = await chain(keyed())
    assert again.hints is not None
    assert again.hints.as_json() == hints.as_json()


@pytest.mark.parametrize("retryable, done", [(False, 1), (True, 2)])
async def test_a_result_that_says_it_failed_goes_by_whether_it_may_be_tried_again(
    retryable: bool, done: int
) -> None:
    text = ({"type": "text", "text": "no such row"},)
    failure = Result(problem=problem("TOOL_FAILED", "no such row", retryable=retryable), content=text)
    async with counter() as desk:
        doer = Doer(failure, failure)
        chain = desk.chain(doer)
        first, again = await chain(keyed()), await chain(keyed())
    assert (doer.done, again.problem, again.content) == (done, first.problem, text)


async def test_a_question_frees_the_key_for_the_call_that_brings_the_answer() -> None:
    ask = Ask(questions={"q": {"method": "elicitation/create", "params": {"message": "Sure?"}}}, state="s")
    async with counter() as desk:
        chain = desk.chain(Doer(Result(ask=ask)))
        first = await chain(keyed())
        answered = await chain(keyed(answers={"q": {"action": "accept"}}, state="s"))
        again = await chain(keyed())
    assert first.ask == ask
    assert (answered.data, again.data) == ({"done": 2}, {"done": 2})


async def test_an_answer_too_large_to_keep_is_given_once_and_then_its_fact() -> None:
    large = Result(data="x" * LARGEST)
    async with counter() as desk:
        doer = Doer(large)
        chain = desk.chain(doer)
        first, again = await chain(keyed()), await chain(keyed())
    assert first.data == large.data
    assert of(again).code == "RESULT_TOO_LARGE"
    assert "was carried out" in of(again).message
    assert doer.done == 1


async def test_an_answer_that_is_no_json_is_given_once_and_then_its_fact() -> None:
    odd = Result(problem=problem("TOOL_FAILED", "no"), content=({"type": "text", "text": "\ud800"},))
    async with counter() as desk:
        doer = Doer(odd)
        chain = desk.chain(doer)
        first, again = await chain(keyed()), await chain(keyed())
    assert (code(first), code(again), doer.done) == ("TOOL_FAILED", "CONTRACT_VIOLATION", 1)


async def test_arguments_need_not_be_json_to_be_told_apart() -> None:
    async with counter() as desk:
        chain = desk.chain(Doer())
        await chain(keyed(arguments={"n": 2**70, "when": frozenset({1}), "text": "\ud800"}))
        assert code(await chain(keyed(arguments={"n": 2**70 + 1}))) == "IDEMPOTENCY_MISMATCH"


# --- with keys in memory ---


CHECK = "it may have taken effect, so check before asking again under another key"


class MemoryKeys:
    """MemoryKeys kept in memory, by somebody who takes a moment for everything."""

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
    """A gateway's part in keeping keys, over keys in memory."""

    def __init__(self) -> None:
        self.keys = MemoryKeys()
        self.counter = Counter(self.keys)

    async def call(self, doer: Doer, **fields: Any) -> Result:
        return await self.counter.chain(doer)(keyed(**fields))


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


def said(result: Result) -> str:
    assert result.problem is not None
    return result.problem.message


async def test_a_key_that_was_used_for_something_else_is_refused_with_what_to_do() -> None:
    desk = MemoryReplay()
    await desk.call(Doer(), arguments={"a": 1})
    other = await desk.call(Doer(), arguments={"a": 2})
    assert code(other) == "IDEMPOTENCY_MISMATCH"
    assert said(other) == (
        "this idempotency key was used for another request; take a new key for a new request"
    )


@pytest.mark.parametrize(
    "holder, until, ended",
    [("there", 60.0, "IN_PROGRESS"), ("there", -1.0, "OUTCOME_UNKNOWN"), ("gone", 60.0, "OUTCOME_UNKNOWN")],
)
async def test_a_call_that_runs_elsewhere_is_waited_for_and_one_that_ended_there_is_unknown(
    holder: str, until: float, ended: str
) -> None:
    desk = MemoryReplay()
    desk.counter.gone.add("gone")
    await desk.call(Doer())
    desk.keys.rows[desk.keys.row.key] = replace(
        desk.keys.row, answer=None, holder=holder, until=desk.counter.replay.clock.now() + until
    )
    again = await desk.call(Doer())
    assert code(again) == ended
    if ended == "IN_PROGRESS":
        assert said(again) == "a call with this idempotency key is still running; ask again for its answer"
    else:
        assert said(again) == f"the call with this idempotency key was cut short; {CHECK}"


async def test_a_call_that_was_cut_short_at_its_source_is_kept_as_unknown_though_its_caller_left() -> None:
    desk = MemoryReplay()
    with anyio.move_on_after(0.01):
        await desk.counter.chain(hang)(keyed())
    assert desk.keys.row.answer is not None
    found = stored_results.read(desk.keys.row.answer)
    assert (code(found), said(found)) == ("OUTCOME_UNKNOWN", f"fake:change was cut short; {CHECK}")


async def test_a_call_that_never_reached_its_source_frees_its_key_though_its_caller_left() -> None:
    desk = MemoryReplay()
    stage = desk.counter.replay.fit(CHANGE)
    assert stage is not None
    with anyio.move_on_after(0.01):
        await stage(keyed(), hang)
    assert desk.keys.rows == {}
    assert (await desk.call(Doer())).data == {"done": 1}


async def test_a_store_that_cannot_keep_an_answer_is_logged_and_the_answer_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = MemoryReplay()
    desk.keys.down = True
    call = keyed()
    with caplog.at_level(logging.WARNING):
        assert (await desk.counter.chain(Doer())(call)).data == {"done": 1}
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.__dict__["call_id"] == call.id


async def test_a_store_that_hangs_does_not_keep_the_answer_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(key: str, call: str, answer: str, size: int) -> bool:
        await anyio.sleep_forever()
        return False

    desk = MemoryReplay()
    monkeypatch.setattr(desk.keys, "finish", never)
    monkeypatch.setattr("toolcrib.steps.replay.MAX_INLINE_SECONDS", 0.01)
    with anyio.fail_after(5):
        assert (await desk.call(Doer())).data == {"done": 1}


async def test_what_is_passed_on_is_the_call_itself() -> None:
    desk, seen = MemoryReplay(), list[Call]()

    async def look(call: Call) -> Result:
        seen.append(call)
        return Result(data=1)

    call = keyed()
    await desk.counter.chain(look)(call)
    plain = replace(call, idempotency_key="")
    await desk.counter.chain(look)(plain)
    assert [each.idempotency_key for each in seen] == [call.idempotency_key, ""]


def fitting(size: int) -> Result:
    """A result that is so many bytes long when it is spelled."""
    empty = len(stored_results.spell(Result(data="")))
    return Result(data="x" * (size - empty))


@pytest.mark.parametrize(
    "result, ended, told",
    [
        (Result(data=object()), "CONTRACT_VIOLATION", "is not JSON"),
        (fitting(LARGEST), None, ""),
        (
            fitting(LARGEST + 1),
            "RESULT_TOO_LARGE",
            f"has {LARGEST + 1} bytes, and at most {LARGEST} are kept",
        ),
    ],
    ids=["no JSON", "just fits", "too large"],
)
async def test_of_an_answer_that_cannot_be_kept_it_is_kept_that_it_was_carried_out(
    result: Result, ended: str | None, told: str
) -> None:
    desk = MemoryReplay()
    await desk.call(Doer(result))
    doer = Doer()
    again = await desk.call(doer)
    assert (code(again), doer.done) == (ended, 0)
    if ended is not None:
        assert said(again) == f"the call was carried out; its answer was not kept, as it {told}"
