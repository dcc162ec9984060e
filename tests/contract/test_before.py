"""Checks before a call: permissions, arguments and limits, for every source and frontend."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.contract.asking import SERVED, Asker
from tests.gateways import ADMIN, open_gateway
from toolcrib.model import Family, RateLimit
from toolcrib.testing import FakeSource, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E10")]

FAMILIES: tuple[Family, ...] = ("function", "core", "mcp", "langchain", "openapi")
"""Apps need a user who installed them: tests/walks/test_apps_everywhere.py covers them."""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1}, "note": {"type": "string"}},
    "required": ["count"],
}
CONFIG = "{limits: {per_user: null}, contexts: {default: {hints: full}}}"


class ToolSources:
    """A gateway with a source of every kind that records its calls."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.sources = {family: self._source(family) for family in FAMILIES}
        for source in self.sources.values():
            asker.crib.runtime.console.supervisor.add(source)

    def _source(self, family: Family) -> FakeSource:
        plain: dict[str, Any] = {"family": family, "input_schema": SCHEMA}
        guarded = a_tool(
            f"{family}:{family}-guarded", permissions=frozenset({"cards:read", "decks:read"}), **plain
        )
        limited = [
            a_tool(f"{family}:{family}-limited-{face}", rate_limit=RateLimit(1, 3_600_000), **plain)
            for face in SERVED
        ]
        return FakeSource([guarded, a_tool(f"{family}:{family}-open", **plain), *limited])

    def ran(self, family: str) -> list[str]:
        """The tools of a source that were called."""
        return [call.tool.local for call in self.sources[family].calls]

    async def code(self, face: str, name: str, arguments: Any, key: str = ADMIN) -> str | None:
        return (await self.asker.ask(face, name, arguments, key=key)).code


@pytest.fixture
async def served() -> AsyncGenerator[ToolSources]:
    async with open_gateway(CONFIG) as gateway:
        made = ToolSources(Asker(gateway))
        assert await gateway.runtime.settled(10)
        yield made


@pytest.mark.requirement("E1")
async def test_missing_permission_prevents_the_call(served: ToolSources) -> None:
    none = await served.asker.crib.key("none")
    other = await served.asker.crib.key("other", permissions=["decks:read", "cards:write"])
    for family in FAMILIES:
        for face in SERVED:
            for key in (none, other):
                answer = await served.asker.ask(face, f"{family}:{family}-guarded", {"count": 1}, key=key)
                assert answer.code == "PERMISSION_DENIED", (family, face)
                assert answer.error is not None
                assert "cards:read" in answer.error["message"]
        assert served.ran(family) == []


async def test_all_permissions_allow_the_call(served: ToolSources) -> None:
    reader = await served.asker.crib.key("reader", permissions=["cards:read", "decks:read"])
    for family in FAMILIES:
        for face in SERVED:
            name = f"{family}:{family}-guarded"
            assert await served.code(face, name, {"count": 1}, reader) is None, (family, face)
        assert served.ran(family) == [f"{family}-guarded"] * len(SERVED)


UNFIT: tuple[tuple[Any, str], ...] = (
    ({}, "arguments.count"),
    ({"note": "but no count"}, "arguments.count"),
    ({"count": "1"}, "arguments.count"),
    ({"count": 0}, "arguments.count"),
    ({"count": 1.5}, "arguments.count"),
    ({"count": 1, "note": None}, "arguments.note"),
)


async def test_invalid_arguments_prevent_the_call(served: ToolSources) -> None:
    for number, family in enumerate(FAMILIES):
        for face in SERVED:
            arguments, path = UNFIT[(number + SERVED.index(face)) % len(UNFIT)]
            answer = await served.asker.ask(face, f"{family}:{family}-open", arguments)
            assert answer.error is not None
            assert (answer.code, answer.error["path"]) == ("INVALID_ARGUMENTS", path), (family, face)
            assert answer.error["class"] == "validation"
        assert served.ran(family) == []
    for arguments, path in UNFIT:
        answer = await served.asker.ask("rest", "mcp:mcp-open", arguments)
        assert answer.error is not None
        assert answer.error["path"] == path
    assert served.ran("mcp") == []


@pytest.mark.requirement("E12")
async def test_rate_limit_prevents_the_call_per_caller(served: ToolSources) -> None:
    other = await served.asker.crib.key("other")
    for family in FAMILIES:
        for face in SERVED:
            name = f"{family}:{family}-limited-{face}"
            assert await served.code(face, name, {"count": 1}) is None
            over = await served.asker.ask(face, name, {"count": 1})
            assert over.code == "RATE_LIMITED", (family, face)
            assert over.error is not None
            assert 0 < over.error["retryAfter"] <= 3600
            assert await served.code(face, name, {"count": 1}, other) is None
        assert len(served.ran(family)) == 2 * len(SERVED)


async def test_denied_caller_learns_nothing_of_the_arguments(served: ToolSources) -> None:
    none = await served.asker.crib.key("none")
    for face in SERVED:
        answer = await served.asker.ask(face, "function:function-guarded", {"count": "wrong"}, key=none)
        assert answer.code == "PERMISSION_DENIED"
        assert answer.error is not None
        assert "path" not in answer.error
