"""A caller that can be asked: what it was asked and told, and what it answers."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from toolcrib.model import JsonObject, Unanswered

Answer = Callable[[str, JsonObject], Awaitable[JsonObject]]

ALL: JsonObject = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


class RecordingChannel:
    """The channel of one call, or of all the calls of one owner."""

    def __init__(
        self,
        owner: str = "ann",
        capabilities: JsonObject = ALL,
        answer: Answer | None = None,
        *,
        alone: bool = False,
        level: str | None = None,
    ) -> None:
        self.owner, self.capabilities, self.alone, self.level = owner, capabilities, alone, level
        self.questions: list[tuple[str, JsonObject]] = []
        self.told: list[JsonObject] = []
        self.given_up = 0
        """How many questions ended without an answer."""
        self._answer = answer

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        self.questions.append((method, params))
        try:
            await anyio.lowlevel.checkpoint()
            if self._answer is not None:
                return await self._answer(method, params)
        except BaseException:
            self.given_up += 1
            raise
        return {"action": "accept", "content": {"name": self.owner}}

    async def log(self, params: JsonObject) -> None:
        self.told.append(params)


async def never(_method: str, _params: JsonObject) -> JsonObject:
    """Think about it for ever."""
    await anyio.sleep_forever()
    return {}


def refusing(code: int, message: str) -> Answer:
    async def refuse(_method: str, _params: JsonObject) -> JsonObject:
        raise Unanswered(code, message)

    return refuse


def said(result: Any) -> Any:
    """What the curious server said."""
    return result.data["said"]
