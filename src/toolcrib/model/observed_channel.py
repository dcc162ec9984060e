"""A caller's channel with somebody listening in: who must know while a question waits for its answer."""

from collections.abc import Callable

from toolcrib.model.channel import Channel
from toolcrib.model.json import JsonObject


def _nothing() -> None:
    pass


class ObservedChannel:
    """Tells when the first of the questions that wait is put, and when the last of them is over."""

    def __init__(
        self, channel: Channel, asked: Callable[[], None], over: Callable[[], None] = _nothing
    ) -> None:
        self._channel, self._asked, self._over = channel, asked, over
        self._waiting = 0

    @property
    def owner(self) -> str:
        """As the channel says."""
        return self._channel.owner

    @property
    def alone(self) -> bool:
        """As the channel says."""
        return self._channel.alone

    @property
    def capabilities(self) -> JsonObject:
        """As the channel says."""
        return self._channel.capabilities

    @property
    def level(self) -> str | None:
        """As the channel says."""
        return self._channel.level

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Put the question through the channel."""
        self._waiting += 1
        if self._waiting == 1:
            self._asked()
        try:
            return await self._channel.ask(method, params)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._over()

    async def log(self, params: JsonObject) -> None:
        """Pass the message on."""
        await self._channel.log(params)
