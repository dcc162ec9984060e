"""A request that comes with a key is carried out once: made again, it is answered with what came of it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from json import dumps
from time import time

import anyio

from toolcrib.errors import Lost, Refused, ToolcribError, Unavailable, problem
from toolcrib.formats import kept
from toolcrib.interfaces import Handler, Outcome, ReplayRow, Replays, Stage
from toolcrib.model import REPLAYED, Call, Problem, Result, Tool

log = logging.getLogger(__name__)

KEPT_SECONDS = 24 * 3600.0
LARGEST = 1024 * 1024
"""No larger answer is kept, in bytes."""
LONGEST = 900.0
"""How long a call may run, in seconds; one elsewhere that has not ended by then is not waited for."""

_ENDING_SECONDS = 10.0
_PAUSE = 1.0
_CHECK = "it may have taken effect, so check before asking again under another key"


@dataclass(frozen=True)
class Replay:
    """Claims a key in the store before anything is done, and keeps the answer under it.

    What the answer says is what the key does: one that may be tried again frees it, any other is kept.
    """

    replays: Replays
    mark: str
    """What this gateway signs its claims with."""
    is_gone: Callable[[str], bool]
    """Whether the process that left a mark has surely ended."""
    _running: dict[str, bool] = field(default_factory=dict[str, bool], init=False, repr=False)
    """The calls that run here under a key, and whether each has come as far as its source."""

    def fit(self, tool: Tool) -> Stage | None:
        """Left out for what changes nothing, and so can be asked again as it is."""
        return None if tool.read_only else self._replay

    @property
    def begin(self) -> "Begin":
        """The step that notes how far such a call has come."""
        return Begin(self._running)

    def _replay(self, call: Call, proceed: Handler) -> Outcome:
        return self._once(call, proceed) if call.idempotency_key else proceed(call)

    async def _once(self, call: Call, proceed: Handler) -> Result:
        row = _claim(call, self.mark)
        # First, so that nobody finds the claim without its call.
        self._running[call.id] = False
        try:
            found = await self._claimed(row)
            return await self._carry_out(call, proceed, row) if found is None else self._answer(row, found)
        finally:
            del self._running[call.id]

    async def _claimed(self, row: ReplayRow) -> ReplayRow | None:
        try:
            return await self.replays.claim(row, since=row.at - KEPT_SECONDS)
        except Unavailable as error:
            raise _no_store(error) from error
        except BaseException as error:  # cut off in the middle: the claim may have been made, so take it back
            await self._end(row, None)
            if isinstance(error, ToolcribError):
                raise _no_store(error) from error
            raise

    def _answer(self, row: ReplayRow, found: ReplayRow) -> Result:
        """Answer from what is there."""
        if found.body != row.body:
            said = "this idempotency key was used for another request; take a new key for a new request"
            raise Refused("IDEMPOTENCY_MISMATCH", said, path="idempotencyKey")
        if found.answer is not None:
            result = kept.read(found.answer)
            return result.but(made=found.at, meta={**result.meta, REPLAYED: True})
        if self._runs(found):
            said = "a call with this idempotency key is still running; ask again for its answer"
            raise Refused("IN_PROGRESS", said, retry_after=_PAUSE)
        raise Lost("OUTCOME_UNKNOWN", f"the call with this idempotency key was cut short; {_CHECK}")

    def _runs(self, found: ReplayRow) -> bool:
        if found.holder == self.mark:
            return found.call in self._running
        return time() < found.until and not self.is_gone(found.holder)

    async def _carry_out(self, call: Call, proceed: Handler, row: ReplayRow) -> Result:
        try:
            result = await proceed(call)
        except ToolcribError as error:
            again = not self._running[call.id] or _may_run_again(error, call.tool)
            await self._end(row, None if again else _ended(error, call.tool))
            raise
        except BaseException:  # the caller went away, or a fault of ours: noted, and let go on
            again = not self._running[call.id] or call.tool.idempotent
            await self._end(row, None if again else _cut_short(call.tool))
            raise
        free = result.ask is not None or (result.problem is not None and result.problem.retryable)
        await self._end(row, None if free else result)
        return result

    async def _end(self, row: ReplayRow, result: Result | None) -> None:
        """Keep a result, or free the key where there is none; also for a caller that has left meanwhile."""
        with anyio.move_on_after(_ENDING_SECONDS, shield=True):
            try:
                if result is None:
                    await self.replays.release(row.key, row.call)
                else:
                    await self.replays.finish(row.key, row.call, _spelled(result))
            except ToolcribError as error:
                said = "what became of a call with an idempotency key cannot be stored; it counts as unknown"
                log.warning("%s: %s", said, error, extra={"call_id": row.call})


@dataclass(frozen=True)
class Begin:
    """From here on a call may take effect, which is noted for those with a key."""

    running: dict[str, bool]

    def fit(self, tool: Tool) -> Stage | None:
        """Left out where no keys are kept."""
        return None if tool.read_only else self._begin

    def _begin(self, call: Call, proceed: Handler) -> Outcome:
        if call.idempotency_key:
            self.running[call.id] = True
        return proceed(call)


def _claim(call: Call, mark: str) -> ReplayRow:
    """A key is its caller's own. What is asked for is a tool and its arguments, in whatever order."""
    now, caller, key = time(), call.caller, call.idempotency_key
    return ReplayRow(
        key=_hash((caller.id, caller.user, caller.key, key)),
        call=call.id,
        # With the key, which is stored nowhere: arguments are often few enough to be guessed by their hash.
        body=_hash((key, call.tool.name, call.arguments)),
        holder=mark,
        at=now,
        until=now + LONGEST,
    )


def _hash(value: object) -> str:
    # A program may hand in what is no JSON, such as a date; its text tells it from others.
    return sha256(dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _may_run_again(error: ToolcribError, tool: Tool) -> bool:
    """Whether nothing was done, or what was done may be done again."""
    if isinstance(error, Refused | Unavailable):
        return True
    return error.problem.retryable and (tool.idempotent or not isinstance(error, Lost))


def _ended(error: ToolcribError, tool: Tool) -> Result:
    """What is kept of an error: itself, unless it says that a call may be made again which may not."""
    return _cut_short(tool) if error.problem.retryable else Result(problem=error.problem, hints=error.hints)


def _spelled(result: Result) -> str:
    """Spell an answer to be kept; of one that cannot be, that the call was carried out."""
    try:
        spelled = kept.spell(result)
    except TypeError:
        return kept.spell(Result(problem=_not_kept("CONTRACT_VIOLATION", "is not JSON"))).decode()
    if len(spelled) > LARGEST:
        over = f"has {len(spelled)} bytes, and at most {LARGEST} are kept"
        spelled = kept.spell(Result(problem=_not_kept("RESULT_TOO_LARGE", over)))
    return spelled.decode()


def _not_kept(code: str, why: str) -> Problem:
    return problem(code, f"the call was carried out; its answer was not kept, as it {why}")


def _cut_short(tool: Tool) -> Result:
    return Result(problem=problem("OUTCOME_UNKNOWN", f"{tool.name} was cut short; {_CHECK}"))


def _no_store(error: ToolcribError) -> Refused:
    said = f"idempotency keys cannot be kept now, so nothing was done: {error}"
    return Refused("OVERLOADED", said, retry_after=error.problem.retry_after or _PAUSE)
