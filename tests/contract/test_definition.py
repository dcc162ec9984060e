"""Decorated tools carry every field of a definition, and tool lists show them."""

import json
from typing import Annotated, Any

import pytest
from pydantic import Field

from tests.gateways import open_gateway
from toolcrib import BrandedId, Crib, Registry, ToolContext, ToolResult, hints, tool
from toolcrib.sdk import ToolDefinitionError

pytestmark = pytest.mark.anyio


class BoxId(BrandedId, prefix="box", description="Which box of cards."):
    """A box of cards."""


EXAMPLE = {
    "description": "Two cards of a box",
    "params": {"boxId": "box_1", "limit": 2},
    "expectedResult": {"cards": ["a", "b"]},
}
SAID = (
    "List the cards of a box and return their names. Use it when someone asks what a box holds,"
    " for example before a review."
)
OPTIONS: dict[str, Any] = {
    "category": "query",
    "response_time": "fast",
    "cacheable": True,
    "cache_ttl": 60,
    "idempotent": True,
    "permissions": ["boxes:read", "cards:read"],
    "tags": ["cards", "learning"],
    "version": "1.2.3",
    "rate_limit": {"maxCalls": 60, "windowMs": 60_000},
    "examples": [EXAMPLE],
}


@tool(**OPTIONS, description=SAID)
async def list_cards(
    boxId: BoxId,  # noqa: N803
    ctx: ToolContext,
    limit: Annotated[int, Field(description="How many at most.", ge=1, le=100)] = 20,
) -> ToolResult[dict[str, list[str]]]:
    cards = ["a", "b", "c"][:limit]
    return ToolResult(data={"cards": cards}, message=f"{boxId} for {ctx.agent_id}", hints=hints.found(cards))


LISTED: dict[str, Any] = {
    "name": "tools:list-cards",
    "description": SAID,
    "permissions": ["boxes:read", "cards:read"],
    "category": "query",
    "responseTime": "fast",
    "cacheable": True,
    "cacheTTL": 60,
    "idempotent": True,
    "examples": [EXAMPLE],
    "tags": ["cards", "learning"],
    "rateLimit": {"maxCalls": 60, "windowMs": 60_000},
    "version": "1.2.3",
}


@pytest.mark.requirement("E1")
async def test_every_definition_field_is_listed() -> None:
    async with Crib(tools=[list_cards]) as crib:
        (listed,) = (each for each in crib.tools() if each["name"] == LISTED["name"])
    assert {key: listed[key] for key in LISTED} == LISTED
    assert "deprecated" not in listed


@pytest.mark.requirement("E1", "E1a", "E4")
async def test_parameters_list_required_meaning_and_range() -> None:
    schema = list_cards.definition.input_schema
    assert schema["required"] == ["boxId"]
    assert schema["properties"] == {
        "boxId": {"type": "string", "description": "Which box of cards.", "pattern": BoxId.pattern},
        "limit": {
            "type": "integer",
            "description": "How many at most.",
            "minimum": 1,
            "maximum": 100,
            "default": 20,
        },
    }
    async with Crib(tools=[list_cards]) as crib:
        good = await crib.call("list-cards", {"boxId": "box_1", "limit": 2})
        assert good.data == EXAMPLE["expectedResult"]
        for wrong in ({}, {"boxId": "card_1"}, {"boxId": "box_1", "limit": 0}, {"boxId": 1}):
            refused = await crib.call("list-cards", wrong)
            assert refused.problem is not None
            assert refused.problem.code == "INVALID_ARGUMENTS"


@pytest.mark.requirement("E1")
async def test_tools_are_found_by_tag() -> None:
    async with Crib(tools=[list_cards]) as crib:
        assert [each["name"] for each in crib.tools(search="learning")] == ["tools:list-cards"]
        assert crib.tools(search="astronomy") == []
    registry = Registry()
    registry.register(list_cards)
    assert registry.get_by_tag("learning") == (list_cards,)
    assert registry.get_by_tag("astronomy") == ()


WORDS: list[tuple[str, Any, Any]] = [
    ("category", ("query", "mutation", "analysis", "generation"), ("read", "")),
    ("response_time", ("fast", "medium", "slow"), ("quick", "")),
    ("version", ("1.2.3", "0.1.0"), ("1.2", "v1.2.3", "")),
    ("permissions", ([], ["cards:read"]), (["cards"], ["cards:"], [":read"], "cards:read")),
]


@pytest.mark.requirement("E1", "E12")
@pytest.mark.parametrize("option, good, bad", WORDS)
def test_enum_fields_have_known_values(option: str, good: Any, bad: Any) -> None:
    plain = {key: value for key, value in OPTIONS.items() if key not in ("cacheable", "cache_ttl")}
    del plain["idempotent"]
    for value in good:
        made = tool(**{**plain, option: value}, description=SAID)(list_cards.function)
        assert made.name == "list-cards"
    for value in bad:
        with pytest.raises(ToolDefinitionError):
            tool(**{**plain, option: value}, description=SAID)(list_cards.function)


@pytest.mark.requirement("E13")
async def test_deprecated_tool_lists_dates_and_replacement() -> None:
    gone = {"since": "2.0.0", "replacement": "tools:list-cards", "removal_date": "2999-01-31"}
    config = json.dumps({"overrides": {"local:get-datetime": {"deprecated": gone}}})
    async with open_gateway(config, tools=[list_cards]) as crib:
        listed = (await crib.request("GET", "/api/tools")).json["tools"]
    (told,) = (each["deprecated"] for each in listed if each["name"] == "local:get-datetime")
    assert told == {"since": "2.0.0", "replacement": "tools:list-cards", "removalDate": "2999-01-31"}
