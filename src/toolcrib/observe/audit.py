"""Audit log of administrative actions: a hash chain, with a limit on events of one kind."""

import logging
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic, time
from typing import Any, Generic, NamedTuple, TypeVar

import anyio
import orjson

from toolcrib.errors import Lost, ToolcribError
from toolcrib.interfaces import FIRST_PREVIOUS, AuditEntry, AuditRecord, AuditTrail, digest_of
from toolcrib.model import Actor, ActorKind, Caller, Json, JsonObject
from toolcrib.observe.redact import Redactor

# --- Rate-limits event records: the first N per key and window are admitted, the rest are only counted ---

WINDOW_SECONDS = 60.0
MAX_KEYS = 4096
"""Maximum number of keys counted separately; events of further keys are counted together."""

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class EventCount(Generic[K]):
    """Number of events of one key in one window that were not recorded individually."""

    key: K
    since: float
    """Seconds since the epoch."""
    until: float
    """On the monotonic clock."""
    seen: int = 0
    count: int = 0

    def as_json(self) -> JsonObject:
        """Return the content of the summary record."""
        return {"count": self.count, "since": round(self.since, 3)}


class EventLimits(Generic[K]):
    """Admits the first `per_window` events of a key in each window and counts the others.

    With more than `max_keys` keys at once, events of further keys are counted under `overflow_key`.
    """

    def __init__(
        self,
        *,
        per_window: int,
        overflow_key: K,
        window: float = WINDOW_SECONDS,
        max_keys: int = MAX_KEYS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._per_window, self._window, self._max_keys, self._clock = per_window, window, max_keys, clock
        self._overflow_key = overflow_key
        self._open: dict[K, EventCount[K]] = {}

    def admit(self, key: K) -> bool:
        """Return whether this event gets a record of its own; if not, it is counted."""
        events = self._open.get(key)
        if events is None:
            events = self._begin(key)
        events.seen += 1
        if events.seen <= self._per_window and events.key != self._overflow_key:
            return True
        events.count += 1
        return False

    def put_back(self, events: EventCount[K]) -> None:
        """Restore a count that could not be written; it is due again at the end of the next window."""
        now = self._open.get(events.key) or self._begin(events.key)
        now.count += events.count
        now.since = min(now.since, events.since)

    def due(self, *, everything: bool = False) -> list[EventCount[K]]:
        """Remove the windows that are over, and return those with a count above zero."""
        now = self._clock()
        over = [events for events in self._open.values() if everything or events.until <= now]
        for events in over:
            del self._open[events.key]
            if events.count and not everything:
                # They may continue: the next window admits none, so that it causes one record per window.
                self._begin(events.key).seen = self._per_window
        return [events for events in over if events.count]

    def _begin(self, key: K) -> EventCount[K]:
        if len(self._open) >= self._max_keys and key != self._overflow_key:
            return self._open.get(self._overflow_key) or self._begin(self._overflow_key)
        events = self._open[key] = EventCount(key, time(), self._clock() + self._window)
        return events


# --- Verifies the hash chain of audit records, from the newest to the first ---


@dataclass(slots=True)
class ChainCheck:
    """State of one verification of the chain."""

    head: str = ""
    """Hash of the newest record; empty if there is none."""
    records: int = 0
    broken: int | None = None
    """Lowest number of a record that is modified, missing or out of order."""
    reason: str = ""
    head_found: bool = False
    """Whether the expected hash is in the chain."""
    _number: int | None = None
    _previous: str = ""

    @property
    def intact(self) -> bool:
        """Whether no record is modified and none is missing up to the head."""
        return self.broken is None

    def add(self, record: Mapping[str, Any], head: str | None) -> None:
        """Check the next older record."""
        number, digest = int(record["number"]), str(record["hash"])
        content: JsonObject = {name: value for name, value in record.items() if name != "hash"}
        if self._number is None:
            self.head = digest
        elif number != self._number - 1:
            self._report(number + 1, "is missing" if number < self._number - 1 else "has a number twice")
        elif digest != self._previous:
            self._report(self._number, "does not follow the record before it")
        if digest_of(content) != digest:
            self._report(number, "has been changed")
        self.records += 1
        self.head_found = self.head_found or digest == head
        self._number, self._previous = number, str(record["previous"])

    def end(self) -> None:
        """Check that the oldest record is the first."""
        if self._number is None:
            return
        if self._number != 1:
            self._report(1, "is missing")
        elif self._previous != FIRST_PREVIOUS:
            self._report(1, "is not the first of its chain")

    def _report(self, number: int, reason: str) -> None:
        # The iteration goes from the newest to the oldest, so the last finding is the first broken record.
        self.broken, self.reason = number, reason


async def check_chain(records: AsyncIterator[JsonObject], head: str | None = None) -> ChainCheck:
    """Verify records, the newest first; `head` is a hash to look for among them."""
    check = ChainCheck()
    async for record in records:
        check.add(record, head)
    check.end()
    return check


# --- Writes an audit record for every administrative action before its response, and logs the record's hash
# ---

MAX_VALUE_CHARACTERS = 16_384
"""Maximum size of `before` and of `after` in a record, in characters; longer values are truncated."""
MAX_TEXT_CHARACTERS = 500
"""Maximum length of a target, name or address in a record; longer text is truncated."""
MAX_REFUSED_PER_MINUTE = 30
"""Refused attempts of one actor with a record each; further ones share one counting record per minute."""
MAX_WRITE_SECONDS = 3.0
"""Timeout for writing the record of a failed attempt."""
SUCCESS = "success"
REFUSALS = "attempts.refused"
"""Action name of a record that counts refused attempts of one actor."""

log = logging.getLogger(__name__)


class RefusedAttempt(NamedTuple):
    """The key by which refused attempts are counted."""

    kind: ActorKind
    name: str
    user: str | None
    address: str
    code: str


@dataclass(slots=True)
class Action:
    """An action in progress; the code that performs it fills in what changes."""

    target: str = ""
    before: Json = None
    after: Json = None
    is_applied: bool = False

    def applied(self, plan: object = None) -> None:
        """Mark the change as stored: the action counts as a success even if a later step fails."""
        del plan
        self.is_applied = True


class Audit:
    """Builds audit records, redacts them and appends them to the audit trail; the only writer."""

    def __init__(self, trail: AuditTrail, redactor: Redactor) -> None:
        self._trail, self._redactor = trail, redactor
        self._process = f"{socket.gethostname()}:{os.getpid()}"
        self._refusals = EventLimits(
            per_window=MAX_REFUSED_PER_MINUTE,
            overflow_key=RefusedAttempt("unknown", "", None, "", "SCOPE_DENIED"),
        )

    @asynccontextmanager
    async def action(self, actor: Actor, name: str, target: str = "") -> AsyncGenerator[Action]:
        """Record the block when it ends: as a success, or with the error code of what it raises.

        A stored change is recorded as a success, also if the block fails after it.
        Raises `Lost` (OUTCOME_UNKNOWN) if the change was carried out and its record cannot be written.
        """
        action = Action(target)
        try:
            yield action
        except BaseException as error:
            code = _outcome_code(error)
            if action.is_applied:
                await self._record_quietly(actor, name, action, SUCCESS)
            else:
                await self.refused(actor, name, action.target, code)
            raise
        try:
            # Shielded: a change that was carried out is recorded, also if the client disconnects now.
            with anyio.CancelScope(shield=True):
                await self.record(actor, name, action)
        except Exception as error:
            message = (
                f"{name} was carried out, but its audit record could not be written; look at the result"
                " before you repeat it, and at the log for the record"
            )
            lost = Lost("OUTCOME_UNKNOWN", message)
            lost.recorded = True  # in the log, at least
            raise lost from error

    async def refused(self, actor: Actor, name: str, target: str, code: str) -> None:
        """Record a failed attempt; if that fails, it is logged and the attempt's own error stands."""
        if self._refusals.admit(RefusedAttempt(actor.kind, actor.name, actor.user, actor.address, code)):
            await self._record_quietly(actor, name, Action(target), code)

    async def record(self, actor: Actor, name: str, action: Action, outcome: str = SUCCESS) -> AuditRecord:
        """Append a record; one that cannot be written is logged in full, and the error is raised."""
        entry = AuditEntry(
            at=round(time(), 3),
            actor_kind=actor.kind,
            actor=self._redacted_text(actor.name),
            user=None if actor.user is None else self._redacted_text(actor.user),
            frontend=actor.frontend,
            address=self._redacted_text(actor.address),
            process=self._process,
            action=name,
            target=self._redacted_text(action.target),
            before=self._redacted_value(action.before),
            after=self._redacted_value(action.after),
            outcome=outcome,
        )
        try:
            return self._logged(await self._trail.add(entry))
        except Exception:
            content = {"audit": entry.content(0, "")}
            log.exception("audit record not written: %s %s", name, entry.target, extra=content)
            raise

    def _logged(self, record: AuditRecord) -> AuditRecord:
        """Log a record with its hash, which anchors the hash chain outside the store."""
        what = " ".join(filter(None, (record.action, record.target)))
        log.info("audit: %s: %s", what, record.outcome, extra={"audit": record.as_json()})
        return record

    async def flush(self, *, everything: bool = False) -> None:
        """Write the counts of refused attempts of closed windows, or of all windows."""
        for events in self._refusals.due(everything=everything):
            kind, name, user, address, code = events.key
            caller = Caller(id=kind, user=user)
            actor = Actor(kind=kind, name=name, caller=caller, frontend="gateway", address=address)
            await self._record_quietly(actor, REFUSALS, Action(after=events.as_json()), code)

    async def _record_quietly(self, actor: Actor, name: str, action: Action, outcome: str) -> None:
        # Shielded: a cancelled action is recorded too, also while the store is busy.
        with anyio.move_on_after(MAX_WRITE_SECONDS, shield=True) as limit:
            try:
                await self.record(actor, name, action, outcome)
            except Exception:  # noqa: BLE001 - `record` has logged it, and the attempt has an error already
                return
        if limit.cancelled_caught:
            log.error("audit record not written in time: %s %s: %s", name, action.target, outcome)

    def _redacted_text(self, text: str) -> str:
        return self._redactor.text(text)[:MAX_TEXT_CHARACTERS]

    def _redacted_value(self, value: Json) -> Json:
        """Return a value redacted, truncated, and limited to JSON that every parser reads alike."""
        cleaned = self._redactor.clean(value, max_characters=MAX_VALUE_CHARACTERS)
        try:
            return orjson.loads(orjson.dumps(cleaned))
        except TypeError:  # half a surrogate pair, or a number past 64 bits
            return repr(cleaned)[:MAX_TEXT_CHARACTERS].encode("ascii", "backslashreplace").decode()


def _outcome_code(error: BaseException) -> str:
    """Return the error code of an exception and mark it as recorded, so that it is recorded once."""
    if isinstance(error, ToolcribError):
        error.recorded = True
        return error.problem.code
    return "EXECUTION_ERROR" if isinstance(error, Exception) else "CANCELLED"
