"""Suggested calls of authors can be followed blindly: from a search to a card to its review."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.gateways import InProcessGateway, open_gateway
from toolcrib.demo.flashcards import flashcards

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E18")]


PATIENT = '{"overrides": {"tools:*": {"timeout_ms": 60000}}}'
"""The flashcards have a second for a call; a busy machine may take longer."""


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(PATIENT, tools=flashcards(tmp_path / "flashcards.db").get_all()) as opened:
        yield opened


def first_call(hints: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The first suggestion that has a tool and arguments, as a client without a model follows it."""
    calls = (each["data"] for each in hints["suggestedNextActions"] if "arguments" in each.get("data", {}))
    return next(((each["tool"], each["arguments"]) for each in calls), None)


async def followed(gateway: InProcessGateway, name: str, steps: int, **more: Any) -> list[tuple[str, Any]]:
    """The calls that a client makes that follows the first suggestion, each with the data it returned."""
    call: tuple[str, Any] | None = (name, {})
    made: list[tuple[str, Any]] = []
    while call is not None and len(made) < steps:
        reply = await gateway.call(*call, **more)
        assert reply.status == 200, reply.body
        made.append((call[0], reply.json["data"]))
        call = first_call(reply.json["agentHints"])
    return made


async def test_search_leads_to_a_card_and_its_review(gateway: InProcessGateway) -> None:
    (search, found), (read, card), (review, asked) = await followed(gateway, "search-decks", 3)
    assert (search, read, review) == ("search-decks", "tools:get-card", "tools:review-next-card")
    assert card["id"] in {deck["nextCardId"] for deck in found["decks"]}
    assert asked["card"]["id"] == card["id"]


async def test_followed_suggestions_change_nothing(gateway: InProcessGateway) -> None:
    before = (await gateway.call("search-decks")).json["data"]
    for start in ("search-decks", "review-next-card"):
        await followed(gateway, start, 6)
    assert (await gateway.call("search-decks")).json["data"] == before


async def test_suggestions_leave_out_tools_that_a_key_may_not_call(gateway: InProcessGateway) -> None:
    searcher = await gateway.key("searcher", permissions=["decks:read"])
    reply = await gateway.call("search-decks", {"limit": 1}, key=searcher)
    assert [each["action"] for each in reply.json["agentHints"]["suggestedNextActions"]] == ["fetch-more"]
    assert (await gateway.call("get-card", {"cardId": "card_ottawa"}, key=searcher)).status == 403


async def test_a_new_card_can_be_read_by_its_hints(gateway: InProcessGateway) -> None:
    new = {"deckId": "deck_http", "front": "What is 204?", "back": "No Content"}
    created = (await gateway.call("create-card-v2", new)).json
    call = first_call(created["agentHints"])
    assert call is not None
    assert (await gateway.call(*call)).json["data"] == created["data"]


async def test_an_unknown_card_leads_back_to_the_decks(gateway: InProcessGateway) -> None:
    failed = (await gateway.call("get-card", {"cardId": "card_nowhere"})).json
    assert first_call(failed["agentHints"]) == ("tools:search-decks", {})
