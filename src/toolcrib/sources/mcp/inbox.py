"""Sorts what a server says while a request of ours waits: its answer, progress, questions, and the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from toolcrib.model import Json, JsonObject, Report
from toolcrib.sources.mcp.connection import Era, Heard
from toolcrib.sources.mcp.faults import Fault, Garbled, Refusal
from toolcrib.sources.mcp.messages import PROGRESS, outcome, progress, reply
from toolcrib.sources.mcp.wire import ENDS, guess_id, parse

Outcome = JsonObject | Fault | None
"""The result of a request, or the fault it ended with; None while neither has come."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request whose answer is awaited."""

    id: int
    method: str
    era: Era
    report: Report | None = None


class Inbox:
    """Takes messages one by one. `answer` sends our answer to a question; False where it cannot."""

    def __init__(self, heard: Heard, answer: Callable[[bytes], bool]) -> None:
        self._heard, self._answer = heard, answer
        self.unclaimed = 0
        """How many messages nobody could use: wrong ids, answers too late, questions too many."""

    async def take(self, data: bytes, asked: Asked | None) -> Outcome:
        """Take a message; return the outcome where it is the answer to what was asked."""
        try:
            value = parse(data)
        except Garbled as fault:
            about = guess_id(data[:ENDS], data[-ENDS:])
            if asked is not None and about in {None, asked.id}:
                return fault
            self.unclaimed += 1
            return None
        found: Outcome = None
        # One revision allows several messages in one list.
        for message in cast("list[Json]", value) if type(value) is list else (value,):
            mine = await self._sorted(message, asked)
            found = found if mine is None else mine
        return found

    async def _sorted(self, message: Json, asked: Asked | None) -> Outcome:
        if type(message) is not dict:
            self.unclaimed += 1
            return None
        fields = cast("JsonObject", message)
        method = fields.get("method")
        if type(method) is not str:
            return self._claimed(fields, asked)
        if "id" in fields:
            answer = reply(fields["id"], method)
            self.unclaimed += answer is None or not self._answer(answer)
        elif method == PROGRESS:
            await self._reported(_params(fields), asked)
        else:
            self._heard(method, _params(fields))
        return None

    def _claimed(self, fields: JsonObject, asked: Asked | None) -> Outcome:
        found, whose = outcome(fields), fields.get("id")
        if found is not None and asked is not None:
            # True and 1.0 are equal to 1, and are no ids.
            if type(whose) is int and whose == asked.id:
                return found
            # A server that could not read a request cannot say which one it was.
            if whose is None and isinstance(found, Refusal):
                return found
        self.unclaimed += 1
        return None

    async def _reported(self, params: JsonObject, asked: Asked | None) -> None:
        if asked is None or asked.report is None or params.get("progressToken") != asked.id:
            self.unclaimed += 1
        else:
            await asked.report(progress(params))


def _params(fields: JsonObject) -> JsonObject:
    params = fields.get("params")
    return cast("JsonObject", params) if type(params) is dict else {}
