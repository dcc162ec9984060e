"""A gateway with scripted tools, and a provider connection in front of it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tests.contracts.dialogues import DIALOGUES, Reply, Said
from toolcrib.catalog import Catalog
from toolcrib.gateway import (
    Completion,
    Gateway,
    ProviderConnection,
    TurnResult,
)
from toolcrib.interfaces import Offer
from toolcrib.model import Call, Caller, JsonObject, Result, Tool
from toolcrib.pipeline import compose
from toolcrib.policy import Context, Contexts, PermissionsRule, Policy
from toolcrib.steps.attempt import Attempt
from toolcrib.steps.deadline import Deadline
from toolcrib.steps.record import Record
from toolcrib.steps.recover import Recover
from toolcrib.testing import Recordings, a_caller

Work = Callable[[Call], Awaitable[Result]]
ANTHROPIC, LIVE = "anthropic", "gemini_live"


class ProviderClient:
    """Tools with one shared handler, and one provider connection."""

    def __init__(
        self,
        *tools: Tool,
        work: Work,
        contexts: dict[str, Context] | None = None,
        used: dict[str, int] | None = None,
        **more: Any,
    ) -> None:
        self.recordings, self.calls = Recordings(), list[Call]()
        self._work, counts = work, used or {}
        ids = iter(range(10_000_000))
        rule = Contexts(contexts or {})
        steps = (Record(self.recordings), Recover(), Deadline(), Attempt(lambda _source: None))
        self.gateway = Gateway(
            Policy([rule, PermissionsRule()]),
            lambda tool: compose(steps, tool, self._carry_out),
            Completion(lambda tool: (1.0, 0.0, counts.get(tool, 0)), called_tools=lambda: counts),
            self.recordings,
            new_id=lambda: f"id-{next(ids)}",
            contexts=lambda: rule.contexts,
        )
        sources = list(dict.fromkeys(tool.source for tool in tools))
        self.catalog = Catalog(sources)
        self.catalog.listen(self.gateway.adopt)
        for source in sources:
            self.catalog.replace(source, Offer(tools=[tool for tool in tools if tool.source == source]))
        self.connection = ProviderConnection(self.gateway, **more)

    async def _carry_out(self, call: Call) -> Result:
        self.calls.append(call)
        return await self._work(call)

    async def turn(
        self, *calls: Said, format: str = ANTHROPIC, caller: Caller | None = None, **more: Any
    ) -> TurnResult:
        """Send a provider message with these calls."""
        message: JsonObject = DIALOGUES[format].asks(calls)
        return await self.connection.turn(message, format, caller or a_caller(), **more)

    async def replies(self, *calls: Said, format: str = ANTHROPIC, **more: Any) -> list[Reply]:
        """Return the replies as the provider parses them."""
        return read(format, (await self.turn(*calls, format=format, **more)).messages)


def read(format: str, messages: Sequence[JsonObject]) -> list[Reply]:
    """Parse replies as the provider does."""
    return DIALOGUES[format].replies([dict(each) for each in messages]) if messages else []


def said(id: str, name: str = "echo", **arguments: Any) -> Said:
    """A call in a provider message."""
    return Said(id=id, name=name, arguments=arguments)
