"""What a caller hears of its request before the answer: progress, log messages, and questions."""

from dataclasses import dataclass

from toolcrib.model import Channel, JsonObject, Progress, Report

News = Progress | JsonObject
"""How far a request has come, or a log message: the parameters of `notifications/message`."""


@dataclass(frozen=True, slots=True)
class Ear:
    """The way to one caller. Progress goes to `report`, all else through the `channel`."""

    report: Report | None = None
    channel: Channel | None = None

    @property
    def owner(self) -> str | None:
        """Whose calls may hear each other's messages; None where nobody else's may."""
        return None if self.channel is None or self.channel.alone else self.channel.owner

    async def hear(self, news: News) -> None:
        """Pass something on, where there is a way for it."""
        if isinstance(news, Progress):
            if self.report is not None:
                await self.report(news)
        elif self.channel is not None:
            await self.channel.log(news)
