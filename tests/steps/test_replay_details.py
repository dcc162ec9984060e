"""What is said of a key that is taken, and that a call ends in the store whoever has left meanwhile."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.steps.keyed import CHANGE, Counter, Doer, code, keyed
from toolcrib.errors import Unavailable
from toolcrib.formats import stored_results
from toolcrib.interfaces import ReplayRow, ReplayTotals
from toolcrib.model import Call, Result
from toolcrib.steps.replay import LARGEST

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]

CHECK = "it may have taken effect, so check before asking again under another key"


class Keys:
    """Keys kept in memory, by somebody who takes a moment for everything."""

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


class Desk:
    """A gateway's part in keeping keys, over keys in memory."""

    def __init__(self) -> None:
        self.keys = Keys()
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
    desk = Desk()
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
    desk = Desk()
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
    desk = Desk()
    with anyio.move_on_after(0.01):
        await desk.counter.chain(hang)(keyed())
    assert desk.keys.row.answer is not None
    found = stored_results.read(desk.keys.row.answer)
    assert (code(found), said(found)) == ("OUTCOME_UNKNOWN", f"fake:change was cut short; {CHECK}")


async def test_a_call_that_never_reached_its_source_frees_its_key_though_its_caller_left() -> None:
    desk = Desk()
    stage = desk.counter.replay.fit(CHANGE)
    assert stage is not None
    with anyio.move_on_after(0.01):
        await stage(keyed(), hang)
    assert desk.keys.rows == {}
    assert (await desk.call(Doer())).data == {"done": 1}


async def test_a_store_that_cannot_keep_an_answer_is_logged_and_the_answer_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
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

    desk = Desk()
    monkeypatch.setattr(desk.keys, "finish", never)
    monkeypatch.setattr("toolcrib.steps.replay.MAX_INLINE_SECONDS", 0.01)
    with anyio.fail_after(5):
        assert (await desk.call(Doer())).data == {"done": 1}


async def test_what_is_passed_on_is_the_call_itself() -> None:
    desk, seen = Desk(), list[Call]()

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
    desk = Desk()
    await desk.call(Doer(result))
    doer = Doer()
    again = await desk.call(doer)
    assert (code(again), doer.done) == (ended, 0)
    if ended is not None:
        assert said(again) == f"the call was carried out; its answer was not kept, as it {told}"
