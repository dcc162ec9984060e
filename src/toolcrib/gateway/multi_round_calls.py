"""Calls of callers that cannot be asked while they wait: a question is the answer, and they call again."""

import asyncio
from functools import partial
from secrets import token_urlsafe
from typing import NamedTuple, cast

import anyio

from toolcrib.errors import Refused, ToolcribError, problem
from toolcrib.gateway.call_options import CallOptions
from toolcrib.gateway.gateway import UNKNOWN, Gateway
from toolcrib.gateway.signed_state import StateSigner, bound_to, of_no_use
from toolcrib.gateway.suspended_calls import (
    NOTHING,
    NotifyOnlyChannel,
    SuspendedCall,
    SuspensionLimits,
    Tell,
    can_be_asked,
)
from toolcrib.model import Ask, Caller, Json, JsonObject, Origin, Report, Result, Tool

WAIT_SECONDS = 600.0
"""How long a call stays parked."""
STATE_SECONDS = 24 * 3600.0
"""How long what a source gave along with its questions can be brought back; keeping it costs us nothing."""

_KIND = "call"
_PARKED, _PASSED = "p", "s"
_CLOSING_SECONDS = 5.0


class _Asked(NamedTuple):
    """One request of a caller: a call, or its way back to one."""

    name: str
    arguments: JsonObject
    caller: Caller
    origin: Origin
    deadline: float | None
    answers: JsonObject
    report: Report | None
    meta: JsonObject | None
    level: str | None
    log: Tell | None
    key: str

    def bound(self, tool: Tool) -> bytes:
        """What the states of this call belong to."""
        return bound_to(self.caller, tool.name, self.arguments)


class MultiRoundCalls:
    """Parks calls that ask, and finds them again by a sealed state; seals what sources want remembered."""

    def __init__(
        self, gateway: Gateway, seal: StateSigner, *, places: SuspensionLimits, wait: float = WAIT_SECONDS
    ) -> None:
        self.seal = seal
        self._gateway, self._places, self._wait = gateway, places, wait

    @property
    def parked(self) -> int:
        """How many calls wait for a caller to come back."""
        return self._places.waiting()

    async def close(self) -> None:
        """End every call that is parked or runs, and wait until they have ended."""
        talks = tuple(self._places.talks)
        for talk in talks:
            talk.drop()
        running = [talk.task for talk in talks if not talk.task.done()]
        if running:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(running, timeout=_CLOSING_SECONDS)

    async def converse(
        self,
        name: str,
        arguments: JsonObject | None,
        caller: Caller,
        *,
        origin: Origin = UNKNOWN,
        deadline: float | None = None,
        capabilities: JsonObject = NOTHING,
        answers: JsonObject | None = None,
        state: str = "",
        idempotency_key: str = "",
        report: Report | None = None,
        meta: JsonObject | None = None,
        level: str | None = None,
        log: Tell | None = None,
    ) -> Result:
        """Carry out one call, or go on with one. Never raises but for cancellation.

        `capabilities` are what the caller can be asked, as MCP spells them. Where the result has an `ask`,
        the caller is to make the same call again, with its state and the answers by their names.
        """
        result: Result | None = None
        if not (capabilities or state or answers or log):
            # A caller without a channel for questions and log messages pays for none.
            options = CallOptions(origin=origin, deadline=deadline, report=report, meta=meta or NOTHING)
            options["idempotency_key"] = idempotency_key
            result = await self._gateway.call(name, arguments, caller, **options)
            if result.ask is None:
                return result
        given, said = arguments or NOTHING, answers or NOTHING
        asked = _Asked(name, given, caller, origin, deadline, said, report, meta, level, log, idempotency_key)
        try:
            if not (capabilities or state):
                return self._passed(result or await self._call(asked, ""), asked)
            return await self._carry_out(asked, capabilities, state)
        except ToolcribError as error:
            return self._gateway.refusal(error.problem, origin)

    async def _carry_out(self, asked: _Asked, capabilities: JsonObject, state: str) -> Result:
        opened = self._opened(asked, state) if state else ""
        if opened.startswith(_PARKED):
            return await self._resume(opened[1:], asked)
        tool = self._asking_tool(asked) if can_be_asked(capabilities) else None
        if tool is None:
            return self._passed(await self._call(asked, opened[1:]), asked)
        return await self._begin(asked, tool, capabilities, opened[1:])

    # --- calls that ask nothing while they run ---

    async def _call(self, asked: _Asked, state: str, talk: SuspendedCall | None = None) -> Result:
        whisper = None if asked.log is None else NotifyOnlyChannel(asked.caller, asked.level, asked.log)
        return await self._gateway.call(
            asked.name,
            asked.arguments,
            asked.caller,
            origin=asked.origin if talk is None else talk.origin,
            deadline=asked.deadline,
            answers=asked.answers,
            state=state,
            idempotency_key=asked.key,
            report=talk.report if talk is not None and asked.report is not None else asked.report,
            channel=talk or whisper,
            meta=asked.meta or {},
        )

    def _passed(self, result: Result, asked: _Asked) -> Result:
        """Seal what a source gave along with its questions."""
        ask = result.ask
        if ask is None or not ask.state:
            return result
        bound = asked.bound(self._gateway.tool(asked.name, asked.caller))
        state = self.seal.close(_KIND, _PASSED + ask.state, bound, STATE_SECONDS)
        return result.replace(ask=Ask(questions=ask.questions, state=state))

    def _opened(self, asked: _Asked, state: str) -> str:
        return self.seal.open(_KIND, state, asked.bound(self._gateway.tool(asked.name, asked.caller)))

    def _asking_tool(self, asked: _Asked) -> Tool | None:
        """Return the tool if it may ask: a function has no way to, and a refused call has nobody to."""
        try:
            tool = self._gateway.tool(asked.name, asked.caller)
        except Refused:
            return None
        return None if tool.inside else tool

    # --- calls that may ---

    async def _begin(self, asked: _Asked, tool: Tool, capabilities: JsonObject, state: str) -> Result:
        origin = self._gateway.identified(asked.origin)
        talk = SuspendedCall(tool, asked.caller, origin, capabilities=capabilities, places=self._places)
        talk.attend(asked.report, asked.level, asked.log)
        talk.start(partial(self._call, asked, state, talk))
        return await self._attended(talk, asked)

    async def _attended(self, talk: SuspendedCall, asked: _Asked) -> Result:
        """Wait for the end or a question, and answer with it. Who leaves meanwhile takes the call along."""
        try:
            await talk.turn()
        except BaseException:
            talk.drop()
            raise
        if talk.over:
            result = talk.result
            return self._said(talk, _cut_short(talk.tool)) if result is None else self._passed(result, asked)
        talk.park(token_urlsafe(16), self._wait)
        return self._question(talk, asked)

    def _question(self, talk: SuspendedCall, asked: _Asked) -> Result:
        state = self.seal.close(_KIND, _PARKED + talk.ticket, asked.bound(talk.tool), talk.left)
        return self._said(talk, Result(ask=Ask(questions=talk.questions(), state=state)))

    def _said(self, talk: SuspendedCall, result: Result) -> Result:
        return self._gateway.completed(result, talk.tool, talk.origin, talk.seconds)

    async def _resume(self, ticket: str, asked: _Asked) -> Result:
        """Go on with a parked call; where an answer is missing, all that waits is asked again."""
        talk = self._places.parked.get(ticket)
        if talk is None or not talk.left:
            raise of_no_use()
        answers = {name: _answer(name, asked.answers.get(name)) for name in talk.asked()}
        given = {name: answer for name, answer in answers.items() if answer is not None}
        if len(given) < len(answers):
            return self._question(talk, asked)
        talk.attend(asked.report, asked.level, asked.log)
        talk.resume(given, asked.deadline)
        return await self._attended(talk, asked)


def _answer(name: str, given: Json) -> JsonObject | None:
    if given is not None and not isinstance(given, dict):
        path = f"answers.{name}"
        raise Refused("INVALID_REQUEST", f"{path} must be an object, as its question asks for", path=path)
    return cast("JsonObject | None", given)


def _cut_short(tool: Tool) -> Result:
    said = f"{tool.name} was cut short before it answered"
    if tool.read_only or tool.idempotent:
        return Result(problem=problem("TIMEOUT", f"{said}; it is safe to try again"))
    said = f"{said}; it may have taken effect, so check before trying again"
    return Result(problem=problem("OUTCOME_UNKNOWN", said))
