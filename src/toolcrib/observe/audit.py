"""Writes an audit record for every administrative action before its response, and logs the record's hash."""

import logging
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import time
from typing import NamedTuple

import anyio
import orjson

from toolcrib.errors import Lost, ToolcribError
from toolcrib.interfaces import AuditEntry, AuditRecord, AuditTrail
from toolcrib.model import Actor, ActorKind, Caller, Json
from toolcrib.observe.event_limits import EventLimits
from toolcrib.observe.redact import Redactor

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
            free=MAX_REFUSED_PER_MINUTE, rest=RefusedAttempt("unknown", "", None, "", "SCOPE_DENIED")
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
            code = _code_of(error)
            if action.is_applied:
                await self._try(actor, name, action, SUCCESS)
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
            await self._try(actor, name, Action(target), code)

    async def record(self, actor: Actor, name: str, action: Action, outcome: str = SUCCESS) -> AuditRecord:
        """Append a record; one that cannot be written is logged in full, and the error is raised."""
        entry = self._entry(actor, name, action, outcome)
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
        for flood in self._refusals.due(everything=everything):
            kind, name, user, address, code = flood.key
            caller = Caller(id=kind, user=user)
            actor = Actor(kind=kind, name=name, caller=caller, frontend="gateway", address=address)
            await self._try(actor, REFUSALS, Action(after=flood.as_json()), code)

    async def _try(self, actor: Actor, name: str, action: Action, outcome: str) -> None:
        # Shielded: a cancelled action is recorded too, also while the store is busy.
        with anyio.move_on_after(MAX_WRITE_SECONDS, shield=True) as limit:
            try:
                await self.record(actor, name, action, outcome)
            except Exception:  # noqa: BLE001 - `record` has logged it, and the attempt has an error already
                return
        if limit.cancelled_caught:
            log.error("audit record not written in time: %s %s: %s", name, action.target, outcome)

    def _entry(self, actor: Actor, name: str, action: Action, outcome: str) -> AuditEntry:
        return AuditEntry(
            at=round(time(), 3),
            actor_kind=actor.kind,
            actor=self._text(actor.name),
            user=None if actor.user is None else self._text(actor.user),
            frontend=actor.frontend,
            address=self._text(actor.address),
            process=self._process,
            action=name,
            target=self._text(action.target),
            before=self._value(action.before),
            after=self._value(action.after),
            outcome=outcome,
        )

    def _text(self, text: str) -> str:
        return self._redactor.text(text)[:MAX_TEXT_CHARACTERS]

    def _value(self, value: Json) -> Json:
        """Return a value redacted, truncated, and limited to JSON that every parser reads alike."""
        cleaned = self._redactor.clean(value, room=MAX_VALUE_CHARACTERS)
        try:
            return orjson.loads(orjson.dumps(cleaned))
        except TypeError:  # half a surrogate pair, or a number past 64 bits
            return repr(cleaned)[:MAX_TEXT_CHARACTERS].encode("ascii", "backslashreplace").decode()


def _code_of(error: BaseException) -> str:
    """Return the error code of an exception and mark it as recorded, so that it is recorded once."""
    if isinstance(error, ToolcribError):
        error.recorded = True
        return error.problem.code
    return "EXECUTION_ERROR" if isinstance(error, Exception) else "CANCELLED"
