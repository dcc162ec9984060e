"""A channel decorator with callbacks for the time in which requests to the caller are pending."""

from collections.abc import Callable

from toolcrib.model.channel import Channel
from toolcrib.model.json import JsonObject


def _nothing() -> None:
    pass


class ObservedChannel:
    """Calls `asked` when the first pending request is sent, and `over` when the last one has ended."""

    def __init__(
        self, channel: Channel, asked: Callable[[], None], over: Callable[[], None] = _nothing
    ) -> None:
        self._channel, self._asked, self._over = channel, asked, over
        self._waiting = 0

    @property
    def owner(self) -> str:
        """Delegate to the channel."""
        return self._channel.owner

    @property
    def alone(self) -> bool:
        """Delegate to the channel."""
        return self._channel.alone

    @property
    def capabilities(self) -> JsonObject:
        """Delegate to the channel."""
        return self._channel.capabilities

    @property
    def level(self) -> str | None:
        """Delegate to the channel."""
        return self._channel.level

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send the request through the channel."""
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
        """Forward the notification."""
        await self._channel.log(params)
