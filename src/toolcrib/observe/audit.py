"""Writes an audit record for every administrative action before it is answered, and logs its hash."""

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
"""How much of `before` and of `after` is kept."""
MAX_TEXT_CHARACTERS = 500
"""How much of a target, a name or an address is kept."""
MAX_REFUSED_PER_MINUTE = 30
"""Refused attempts of one actor that get a record each; further ones are counted in one record a minute."""
MAX_WRITE_SECONDS = 3.0
"""How long an attempt that failed waits for its record to be written."""
SUCCESS = "success"
REFUSALS = "attempts.refused"
"""The action of a record that counts refused attempts of one actor."""

log = logging.getLogger(__name__)


class RefusedAttempt(NamedTuple):
    """What refused attempts are counted by."""

    kind: ActorKind
    name: str
    user: str | None
    address: str
    code: str


@dataclass(slots=True)
class Action:
    """An action under way; whoever performs it fills in what changes."""

    target: str = ""
    before: Json = None
    after: Json = None
    is_applied: bool = False

    def applied(self, plan: object = None) -> None:
        """Note that the change is stored: whatever fails afterwards, it has happened."""
        del plan
        self.is_applied = True


class Audit:
    """The one way to the audit trail."""

    def __init__(self, trail: AuditTrail, redactor: Redactor) -> None:
        self._trail, self._redactor = trail, redactor
        self._process = f"{socket.gethostname()}:{os.getpid()}"
        self._refusals = EventLimits(
            free=MAX_REFUSED_PER_MINUTE, rest=RefusedAttempt("unknown", "", None, "", "SCOPE_DENIED")
        )

    @asynccontextmanager
    async def action(self, actor: Actor, name: str, target: str = "") -> AsyncGenerator[Action]:
        """Record what the block does, when it ends: as a success, or with the code of what it raises.

        A change that was stored is a success and has its own record, also where the block fails after it.
        A change that cannot be recorded is answered with an error that says so.
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
            # Shielded: what was carried out is recorded, also where the caller leaves now.
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
        """Record an attempt that failed; one that cannot be recorded is logged, and its error stays."""
        if self._refusals.admit(RefusedAttempt(actor.kind, actor.name, actor.user, actor.address, code)):
            await self._try(actor, name, Action(target), code)

    async def record(self, actor: Actor, name: str, action: Action, outcome: str = SUCCESS) -> AuditRecord:
        """Append a record; one that cannot be written is logged whole."""
        entry = self._entry(actor, name, action, outcome)
        try:
            return self._logged(await self._trail.add(entry))
        except Exception:
            content = {"audit": entry.content(0, "")}
            log.exception("audit record not written: %s %s", name, entry.target, extra=content)
            raise

    def _logged(self, record: AuditRecord) -> AuditRecord:
        """Log a record with its hash, so that the chain has an anchor outside the store."""
        what = " ".join(filter(None, (record.action, record.target)))
        log.info("audit: %s: %s", what, record.outcome, extra={"audit": record.as_json()})
        return record

    async def flush(self, *, everything: bool = False) -> None:
        """Write the counts of refused attempts whose minute is over, or of all."""
        for flood in self._refusals.due(everything=everything):
            kind, name, user, address, code = flood.key
            caller = Caller(id=kind, user=user)
            actor = Actor(kind=kind, name=name, caller=caller, frontend="gateway", address=address)
            await self._try(actor, REFUSALS, Action(after=flood.as_json()), code)

    async def _try(self, actor: Actor, name: str, action: Action, outcome: str) -> None:
        # Shielded: whoever cancels an action leaves a record all the same, also where the store is busy.
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
        """Return a value without secrets, no longer than it may be, and as every JSON reader reads it."""
        cleaned = self._redactor.clean(value, room=MAX_VALUE_CHARACTERS)
        try:
            return orjson.loads(orjson.dumps(cleaned))
        except TypeError:  # half a surrogate pair, or a number past 64 bits
            return repr(cleaned)[:MAX_TEXT_CHARACTERS].encode("ascii", "backslashreplace").decode()


def _code_of(error: BaseException) -> str:
    """Return the code of what an action raised, which is marked: no other place records it again."""
    if isinstance(error, ToolcribError):
        error.recorded = True
        return error.problem.code
    return "EXECUTION_ERROR" if isinstance(error, Exception) else "CANCELLED"
