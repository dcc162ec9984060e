"""Confidence follows from what is known: from the answer, from its author, from the tool's record."""

import pytest

from tests.gateways import InProcessGateway, open_gateway
from toolcrib import ToolResult, create_tool, hints

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E8")]

ROWS = [str(number) for number in range(10)]


@create_tool(category="query")
async def list_rows(some: int) -> ToolResult[list[str]]:
    """List some of ten rows, with hints of its own."""
    return ToolResult(data=ROWS[:some], hints=hints.found(ROWS[:some], total=len(ROWS)))


@create_tool(category="query")
async def list_plainly(some: int) -> list[str]:
    """List some of ten rows; fail if more are requested."""
    if some > len(ROWS):
        raise ValueError
    return ROWS[:some]


async def confidence(gateway: InProcessGateway, name: str, some: int) -> float:
    return (await gateway.call(name, {"some": some})).json["agentHints"]["confidence"]


async def test_confidence_grows_with_completeness() -> None:
    async with open_gateway(tools=[list_rows]) as gateway:
        told = [await confidence(gateway, "list-rows", some) for some in range(1, 11)]
    assert told == sorted(told)
    assert len(set(told)) >= 8
    assert all(0 <= each <= 1 for each in told)


@pytest.mark.requirement("E9")
async def test_confidence_follows_failures_and_successes() -> None:
    async with open_gateway(tools=[list_plainly]) as gateway:
        fresh = await confidence(gateway, "list-plainly", 5)
        falling: list[float] = []
        for _ in range(4):
            failed = await confidence(gateway, "list-plainly", 11)
            falling.append(await confidence(gateway, "list-plainly", 5))
            assert failed < falling[-1], "an answer is worth more than an error"
        rising = [await confidence(gateway, "list-plainly", 5) for _ in range(20)]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] < fresh
    assert rising == sorted(rising)
    assert falling[-1] < rising[-1]
    assert len({*falling, *rising}) > 10


async def test_empty_result_lowers_confidence() -> None:
    async with open_gateway(tools=[list_plainly]) as gateway:
        assert await confidence(gateway, "list-plainly", 0) < await confidence(gateway, "list-plainly", 5)
