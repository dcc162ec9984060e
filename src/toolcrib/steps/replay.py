"""Idempotency keys: a call with a key is executed once; a repeated key returns the stored result."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from json import dumps
from time import time

import anyio

from toolcrib.clock import Clock
from toolcrib.errors import Lost, Refused, ToolcribError, Unavailable, problem
from toolcrib.formats import rest
from toolcrib.interfaces import Handler, Outcome, ReplayRow, Stage, StoredReplays, is_not_begun
from toolcrib.model import REPLAYED, Call, Problem, Result, Tool
from toolcrib.quotas import BoundedReplays, ReplayQuota

log = logging.getLogger(__name__)

MAX_STORED_BYTES = 1024 * 1024
"""Maximum size of a stored result, in bytes."""
MAX_CLAIM_SECONDS = 900.0
"""Maximum seconds a claim of another process is respected; after that its call counts as interrupted."""

MAX_INLINE_SECONDS = 1.0
"""Maximum seconds a response waits until its ending is stored, if the caller's deadline is not earlier."""
MIN_INLINE_SECONDS = 0.1
"""Minimum of the same, also past the deadline: a working store needs a few milliseconds."""
MAX_PENDING_BYTES = 32 * 1024 * 1024
ENDING_RETRY_SECONDS = 1.0
_LAST_RETRY_TIMEOUT_SECONDS = 3.0

_IN_PROGRESS_RETRY_SECONDS = 1.0
_STORE_RETRY_SECONDS = 2.0
_CHECK_ADVICE = "it may have taken effect, so check before you repeat it with another key"


@dataclass
class Endings:
    """Stores the endings of calls with a key; writes that fail are retried in the background.

    Endings that are pending when the process exits count as OUTCOME_UNKNOWN.
    """

    replays: BoundedReplays
    clock: Callable[[], float]
    _pending: dict[str, tuple[ReplayRow, str | None]] = field(
        default_factory=dict[str, tuple[ReplayRow, str | None]], init=False
    )
    _bytes: int = field(default=0, init=False)

    @property
    def pending(self) -> int:
        """Number of endings that wait to be stored."""
        return len(self._pending)

    def is_pending(self, call: str) -> bool:
        """Whether the ending of a call still waits to be stored."""
        return call in self._pending

    async def store(self, row: ReplayRow, answer: str | None, deadline: float | None) -> None:
        """Store a result, or release the key for None; waits briefly, and then retries in the background."""
        remaining = MAX_INLINE_SECONDS if deadline is None else deadline - anyio.current_time()
        seconds = min(MAX_INLINE_SECONDS, max(remaining, MIN_INLINE_SECONDS))
        if not await self._write(row, answer, seconds):
            message = (
                "the outcome of a call with an idempotency key cannot be stored now; the write is retried"
            )
            log.warning(message, extra={"call_id": row.call})
            self._enqueue(row, answer)

    async def run(self) -> None:
        """Retry pending endings until cancelled, then one last time."""
        try:
            while True:
                await anyio.sleep(ENDING_RETRY_SECONDS)
                await self._retry(MAX_INLINE_SECONDS)
        except anyio.get_cancelled_exc_class():
            await self._retry(_LAST_RETRY_TIMEOUT_SECONDS)
            for call in tuple(self._pending):
                self._give_up(call)
            raise

    async def _retry(self, seconds: float) -> None:
        for call, (row, answer) in tuple(self._pending.items()):
            if call not in self._pending:  # given up while another was stored
                continue
            if await self._write(row, answer, seconds):
                self._forget(call)
            elif row.until < self.clock():
                self._give_up(call)
            else:
                return

    async def _write(self, row: ReplayRow, answer: str | None, seconds: float) -> bool:
        with anyio.move_on_after(seconds, shield=True):
            try:
                if answer is None:
                    await self.replays.release(row)
                else:
                    await self.replays.finish(row, answer)
            except ToolcribError:
                return False
            return True
        return False

    def _enqueue(self, row: ReplayRow, answer: str | None) -> None:
        self._forget(row.call)
        self._pending[row.call] = (row, answer)
        self._bytes += _pending_bytes(answer)
        while self._bytes > MAX_PENDING_BYTES:
            self._give_up(next(iter(self._pending)))

    def _forget(self, call: str) -> bool:
        """Drop a pending ending; False if it was removed while another one was being stored."""
        pending = self._pending.pop(call, None)
        if pending is None:
            return False
        self._bytes -= _pending_bytes(pending[1])
        return True

    def _give_up(self, call: str) -> None:
        if not self._forget(call):
            return
        message = "the outcome of a call with an idempotency key could not be stored and counts as unknown"
        log.warning(message, extra={"call_id": call})


def _pending_bytes(answer: str | None) -> int:
    return 1024 + len(answer or "")


@dataclass(frozen=True)
class Replay:
    """Claims a key in the store before the call, and stores the result under it.

    A retryable error releases the key; any other result is stored.
    """

    replays: StoredReplays
    mark: str
    """Identifies this process as the holder of its claims."""
    is_gone: Callable[[str], bool]
    """Whether the process with a mark has certainly ended."""
    refused: Callable[[], str] = str
    """Reason why the store does not accept writes now; empty while it does."""
    clock: Clock = field(default_factory=Clock)
    """The store's clock: a jump of the system clock must not expire a key."""
    quota: ReplayQuota = field(default_factory=ReplayQuota)
    _running: dict[str, bool] = field(default_factory=dict[str, bool], init=False, repr=False)
    """Calls that run here under a key, and whether each has reached its source."""
    bounded: BoundedReplays = field(init=False, repr=False)
    endings: Endings = field(init=False, repr=False)

    def __post_init__(self) -> None:
        message = "the call was executed; its result was evicted from the store by newer ones"
        evicted = rest.encode_stored(Result(problem=problem("ANSWER_NOT_KEPT", message))).decode()
        now = self.clock.now
        bounded = BoundedReplays(self.replays, self.quota, short_answer=evicted, clock=now)
        object.__setattr__(self, "bounded", bounded)
        object.__setattr__(self, "endings", Endings(bounded, now))

    def fit(self, tool: Tool) -> Stage | None:
        """Return the stage; None for read-only tools, which are safe to repeat without a key."""
        if tool.read_only:
            return None
        return self._replay_declared if tool.declared_mutation else self._replay

    @property
    def begin(self) -> "Begin":
        """The step that marks a call with a key as begun."""
        return Begin(self._running)

    def _replay(self, call: Call, proceed: Handler) -> Outcome:
        return self._run_once(call, proceed) if call.idempotency_key else proceed(call)

    def _replay_declared(self, call: Call, proceed: Handler) -> Outcome:
        """Refuse a declared mutation that could not be recorded afterwards."""
        if reason := self.refused():
            message = f"{call.tool.name} is a mutation, which cannot be recorded now, so nothing was done"
            message = f"{message}: the store is unavailable: {reason}"
            raise Refused("OVERLOADED", message, retry_after=_STORE_RETRY_SECONDS)
        return self._replay(call, proceed)

    async def _run_once(self, call: Call, proceed: Handler) -> Result:
        if reason := self.refused():
            raise _store_unavailable(f"the store is unavailable: {reason}")
        row = _claim(call, self.mark, self.clock.now())
        # Before the claim, so that a concurrent request never finds the claim without its call.
        self._running[call.id] = False
        try:
            stored = await self._claim_key(call, row)
            if stored is None:
                return await self._run_and_store(call, proceed, row)
            return self._stored_result(row, stored)
        finally:
            del self._running[call.id]

    async def _claim_key(self, call: Call, row: ReplayRow) -> ReplayRow | None:
        try:
            return await self.bounded.claim(row)
        except Refused:
            raise
        except Unavailable as error:
            raise _store_unavailable(str(error)) from error
        except BaseException as error:  # interrupted: the claim may have been stored, so release it
            await self.endings.store(row, None, call.deadline)
            if isinstance(error, ToolcribError):
                raise _store_unavailable(str(error)) from error
            raise

    def _stored_result(self, row: ReplayRow, stored: ReplayRow) -> Result:
        """Return the stored result, or raise if the key is running, interrupted or of another request."""
        if stored.body != row.body:
            message = "this idempotency key was used for another request; use a new key for a new request"
            raise Refused("IDEMPOTENCY_MISMATCH", message, path="idempotencyKey")
        if stored.answer is not None:
            result = rest.decode_stored(stored.answer)
            age = max(0.0, self.clock.now() - stored.at)
            return result.replace(made=time() - age, meta={**result.meta, REPLAYED: True})
        if self._is_running(stored):
            message = "a call with this idempotency key is still running; retry to get its result"
            raise Refused("IN_PROGRESS", message, retry_after=_IN_PROGRESS_RETRY_SECONDS)
        raise Lost("OUTCOME_UNKNOWN", f"the call with this idempotency key was interrupted; {_CHECK_ADVICE}")

    def _is_running(self, stored: ReplayRow) -> bool:
        if stored.holder == self.mark:
            return stored.call in self._running or self.endings.is_pending(stored.call)
        return self.clock.now() < stored.until and not self.is_gone(stored.holder)

    async def _run_and_store(self, call: Call, proceed: Handler, row: ReplayRow) -> Result:
        try:
            result = await proceed(call)
        except ToolcribError as error:
            repeatable = not self._running[call.id] or _may_run_again(error, call.tool)
            await self._end(call, row, None if repeatable else _error_result(error, call.tool))
            raise
        except BaseException as error:  # cancellation, or an error of the gateway: stored and re-raised
            repeatable = not self._running[call.id] or call.tool.idempotent or is_not_begun(error)
            await self._end(call, row, None if repeatable else _interrupted_result(call.tool))
            raise
        releases_key = result.ask is not None or (result.problem is not None and result.problem.retryable)
        await self._end(call, row, None if releases_key else result)
        return result

    async def _end(self, call: Call, row: ReplayRow, result: Result | None) -> None:
        """Store a result, or release the key for None; also if the client has disconnected."""
        await self.endings.store(row, None if result is None else _serialized(result), call.deadline)


@dataclass(frozen=True)
class Begin:
    """Marks calls with a key as begun: from this step on they may take effect."""

    running: dict[str, bool]

    def fit(self, tool: Tool) -> Stage | None:
        """Return the stage; None for read-only tools, which use no keys."""
        return None if tool.read_only else self._begin

    def _begin(self, call: Call, proceed: Handler) -> Outcome:
        if call.idempotency_key:
            self.running[call.id] = True
        return proceed(call)


def _claim(call: Call, mark: str, now: float) -> ReplayRow:
    """Return the row that claims a key: scoped to its caller, with a hash of tool and arguments."""
    caller, key = call.caller, call.idempotency_key
    return ReplayRow(
        key=_hash((caller.id, caller.user, caller.key, key)),
        call=call.id,
        # Salted with the key, which is stored nowhere: a plain hash of few possible arguments can be guessed.
        body=_hash((key, call.tool.name, call.arguments)),
        holder=mark,
        at=now,
        until=now + MAX_CLAIM_SECONDS,
        owner=caller.principal,
    )


def _hash(value: object) -> str:
    # A library caller may pass values that are not JSON, such as a date; their text distinguishes them.
    return sha256(dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _may_run_again(error: ToolcribError, tool: Tool) -> bool:
    """Whether nothing was done, or the call is safe to repeat."""
    if isinstance(error, Refused | Unavailable):
        return True
    return error.problem.retryable and (tool.idempotent or not isinstance(error, Lost))


def _error_result(error: ToolcribError, tool: Tool) -> Result:
    """Return the result to store for an error: itself, or OUTCOME_UNKNOWN if it claims to be retryable."""
    if error.problem.retryable:
        return _interrupted_result(tool)
    return Result(problem=error.problem, hints=error.hints)


def _serialized(result: Result) -> str:
    """Serialize a result to store; if it cannot be stored, an error that the call was carried out."""
    try:
        serialized = rest.encode_stored(result)
    except TypeError:
        return rest.encode_stored(Result(problem=_not_stored("CONTRACT_VIOLATION", "is not JSON"))).decode()
    if len(serialized) > MAX_STORED_BYTES:
        excess = f"has {len(serialized)} bytes, which exceeds the limit of {MAX_STORED_BYTES}"
        serialized = rest.encode_stored(Result(problem=_not_stored("RESULT_TOO_LARGE", excess)))
    return serialized.decode()


def _not_stored(code: str, reason_text: str) -> Problem:
    return problem(code, f"the call was executed; its result was not stored, as it {reason_text}")


def _interrupted_result(tool: Tool) -> Result:
    return Result(problem=problem("OUTCOME_UNKNOWN", f"{tool.name} was interrupted; {_CHECK_ADVICE}"))


def _store_unavailable(reason: str) -> Refused:
    message = f"idempotency keys cannot be stored now, so nothing was done: {reason}"
    return Refused("OVERLOADED", message, retry_after=_STORE_RETRY_SECONDS)
