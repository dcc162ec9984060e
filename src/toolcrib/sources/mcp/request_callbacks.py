"""Callbacks of a request in flight: progress, log messages and server requests for its caller."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from toolcrib.model import Channel, Json, JsonObject, Progress, Report

News = Progress | JsonObject
"""Progress, or a log message: the parameters of `notifications/message`."""


@dataclass(frozen=True, slots=True)
class RequestCallbacks:
    """Callbacks to one caller: progress to `report`, everything else to the `channel`."""

    report: Report | None = None
    channel: Channel | None = None
    redact: Callable[[str], str] = str
    """Redacts the operator's secrets: a server's log messages are meant for its operator."""

    @property
    def owner(self) -> str | None:
        """Owner of the calls that may receive each other's log messages; None if this call shares none."""
        return None if self.channel is None or self.channel.alone else self.channel.owner

    async def hear(self, news: News) -> None:
        """Deliver progress or a log message, if there is a callback for it."""
        if isinstance(news, Progress):
            if self.report is not None:
                said = news.message
                await self.report(news if said is None else replace(news, message=self.redact(said)))
        elif self.channel is not None:
            await self.channel.log(cast("JsonObject", redacted(news, self.redact)))


def redacted(value: Json, redact: Callable[[str], str]) -> Json:
    """Return a value with all strings redacted; its depth is bounded, as a message's is."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted(each, redact) for each in cast("list[Json]", value)]
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {redact(key): redacted(each, redact) for key, each in held.items()}
    return value
