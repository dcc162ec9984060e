"""Caching: per caller and ttl, never for mutations."""

import json
from typing import Any

import pytest

from tests.contract.asking import FACES, asking
from tests.gateways import InProcessGateway, open_gateway
from toolcrib import create_tool
from toolcrib.model import Category
from toolcrib.sdk import AnyTool, ToolDefinitionError
from toolcrib.steps.cache import Cache
from toolcrib.store.shared.memory import MemoryShared
from toolcrib.testing import a_call, a_tool, echo

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]


def counting(name: str, category: Category, **options: Any) -> AnyTool:
    """A tool that answers with how often it has run."""
    ran = 0

    async def count() -> dict[str, int]:
        nonlocal ran
        ran += 1
        return {"run": ran}

    return create_tool(count, name=name, category=category, **options)


async def run_of(gateway: InProcessGateway, name: str, **more: Any) -> tuple[int, bool]:
    """The run number of an answer, and whether it is marked as cached."""
    told = (await gateway.call(name, **more)).json
    return told["data"]["run"], told["metadata"]["cached"]


async def metrics_of(gateway: InProcessGateway, start: str) -> dict[str, float]:
    lines = (await gateway.request("GET", "/metrics")).body.decode().splitlines()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(start)
    }


@pytest.mark.requirement("E6")
async def test_cached_answer_is_marked_on_every_frontend() -> None:
    @create_tool(category="query", cache_ttl=3600)
    async def look_up() -> dict[str, int]:
        """Look something up."""
        return {"found": 1}

    async with asking(look_up) as asker:
        for face in FACES:
            first, again = [(await asker.ask(face, "look-up")).metadata["cached"] for _ in range(2)]
            assert again is True, face
            assert first is (face not in ("rest", "library")), "the served faces share one caller's answers"


async def test_cached_query_runs_once_per_caller() -> None:
    async with open_gateway(tools=[counting("look-up", "query", cache_ttl=3600)]) as gateway:
        one, two = await gateway.key("one"), await gateway.key("two")
        assert [await run_of(gateway, "look-up", key=one) for _ in range(2)] == [(1, False), (1, True)]
        assert [await run_of(gateway, "look-up", key=two) for _ in range(2)] == [(2, False), (2, True)]
        ann = {"x-user-id": "ann"}
        await gateway.begin("ann")
        await gateway.begin("bob")
        assert await run_of(gateway, "look-up", headers=ann) == (3, False)
        assert await run_of(gateway, "look-up", headers={"x-user-id": "bob"}) == (4, False)
        assert await run_of(gateway, "look-up", headers=ann) == (3, True)


@pytest.mark.parametrize("category", ["query", "analysis", "generation", "mutation"])
async def test_uncached_tools_run_every_time(category: Category) -> None:
    async with open_gateway(tools=[counting("do-it", category)]) as gateway:
        assert [await run_of(gateway, "do-it") for _ in range(3)] == [(1, False), (2, False), (3, False)]


@pytest.mark.parametrize("category", ["query", "analysis", "generation"])
async def test_queries_and_generations_are_cacheable(category: Category) -> None:
    async with open_gateway(tools=[counting("do-it", category, cache_ttl=3600)]) as gateway:
        assert [await run_of(gateway, "do-it") for _ in range(2)] == [(1, False), (1, True)]


async def test_mutations_are_never_cached() -> None:
    with pytest.raises(ToolDefinitionError, match=r"\bcache"):
        counting("change-it", "mutation", cache_ttl=3600)
    said = {"tools:*": {"cache_ttl": 3600, "shared_cache": True, "idempotent": True}}
    async with open_gateway(
        json.dumps({"overrides": said}), tools=[counting("change-it", "mutation")]
    ) as gateway:
        assert [await run_of(gateway, "change-it") for _ in range(3)] == [(1, False), (2, False), (3, False)]


async def test_errors_of_cacheable_tools_are_not_cached() -> None:
    tries = 0

    @create_tool(category="query", cache_ttl=3600)
    async def look_up() -> dict[str, int]:
        """Fail once."""
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ValueError
        return {"run": tries}

    async with open_gateway(tools=[look_up]) as gateway:
        assert (await gateway.call("look-up")).code == "HANDLER_ERROR"
        assert await run_of(gateway, "look-up") == (2, False)


async def test_cache_entry_expires_after_ttl() -> None:
    clock = [0.0]
    tool = a_tool(category="query", cache_ttl=90.0)
    stage = Cache(MemoryShared(clock=lambda: clock[-1])).fit(tool)
    assert stage is not None
    for moment, kept in ((0.0, False), (60.0, True), (89.9, True), (90.1, False), (100.0, True)):
        clock.append(moment)
        assert (await stage(a_call(tool), echo)).cached is kept, moment


@pytest.mark.requirement("E14")
async def test_cache_hits_and_misses_are_counted() -> None:
    tools = [counting("look-up", "query", cache_ttl=3600), counting("change-it", "mutation")]
    async with open_gateway(tools=tools) as gateway:
        for _ in range(4):
            await run_of(gateway, "look-up")
            await run_of(gateway, "change-it")
        assert await metrics_of(gateway, "toolcrib_cache_total{") == {
            'toolcrib_cache_total{tool="tools:look-up",outcome="hit"}': 3,
            'toolcrib_cache_total{tool="tools:look-up",outcome="miss"}': 1,
        }
