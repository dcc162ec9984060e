"""A user of the flashcards on a real gateway, with a clock that the test advances."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from toolcrib.crib import Crib
from toolcrib.demo.flashcards.learning import Grade
from toolcrib.formats.rest import encode

MORNING = datetime(2030, 1, 7, 8, 0, tzinfo=UTC)


@dataclass
class Time:
    """A clock that only the test advances."""

    now: datetime = MORNING

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **by: float) -> None:
        """Let days, hours, minutes or seconds pass."""
        self.now += timedelta(**by)


@dataclass
class Learner:
    """Calls the tools, and reads the answers as they come over HTTP."""

    crib: Crib
    time: Time
    path: Path
    user: str | None
    due: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """Return when each card is due, according to its last review."""

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool; the whole answer."""
        result = await self.crib.call(f"tools:{name}", arguments, user=self.user)
        return json.loads(encode(result))

    async def ask(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool that must succeed; its data."""
        answer = await self.call(name, **arguments)
        assert answer["success"], answer
        return answer["data"]

    async def refused(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must refuse; returns its message and suggestions."""
        answer = await self.call(name, **arguments)
        assert not answer["success"]
        return {**answer["error"], "next": actions(answer["agentHints"])}

    async def review(self, card: str, rating: Grade = "good", seconds: float | None = 4.0) -> dict[str, Any]:
        """Review a card and let the time of the answer pass; the hints."""
        timed = {} if seconds is None else {"responseMs": int(seconds * 1000)}
        answer = await self.call("review-card", cardId=card, rating=rating, **timed)
        assert answer["success"], answer
        self.due[card] = datetime.fromisoformat(answer["data"]["due"])
        self.time.pass_(seconds=seconds or 4.0)
        return answer["agentHints"]

    async def on_time(self, card: str, *ratings: Grade, seconds: float = 4.0) -> dict[str, Any]:
        """Review a card once for each rating, each time when it is due; the hints of the last time."""
        told: dict[str, Any] = {}
        for rating in ratings:
            self.time.now = max(self.time.now, self.due.get(card, self.time.now))
            told = await self.review(card, rating, seconds)
        return told


def actions(hints: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The suggested next actions by their names."""
    return {each["action"]: each for each in hints["suggestedNextActions"]}


def suggested(tool: str, **arguments: Any) -> dict[str, Any]:
    """The data of a suggested call."""
    return {"tool": f"tools:{tool}", "arguments": arguments}


def risk(hints: dict[str, Any], kind: str) -> dict[str, Any]:
    """The risk of a kind."""
    return next(each for each in hints["riskFactors"] if each["type"] == kind)
