"""What a caller hears of its request before the answer: progress, log messages, and questions."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from toolcrib.model import Channel, Json, JsonObject, Progress, Report

News = Progress | JsonObject
"""How far a request has come, or a log message: the parameters of `notifications/message`."""


@dataclass(frozen=True, slots=True)
class RequestCallbacks:
    """The way to one caller. Progress goes to `report`, all else through the `channel`."""

    report: Report | None = None
    channel: Channel | None = None
    redact: Callable[[str], str] = str
    """Takes the operator's secrets out: what a server logs was meant for its operator."""

    @property
    def owner(self) -> str | None:
        """Whose calls may hear each other's messages; None where nobody else's may."""
        return None if self.channel is None or self.channel.alone else self.channel.owner

    async def hear(self, news: News) -> None:
        """Pass something on, where there is a way for it."""
        if isinstance(news, Progress):
            if self.report is not None:
                said = news.message
                await self.report(news if said is None else replace(news, message=self.redact(said)))
        elif self.channel is not None:
            await self.channel.log(cast("JsonObject", redacted(news, self.redact)))


def redacted(value: Json, redact: Callable[[str], str]) -> Json:
    """Return a value without secrets in any of its texts; it nests no deeper than a message may."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted(each, redact) for each in cast("list[Json]", value)]
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {redact(key): redacted(each, redact) for key, each in held.items()}
    return value
