"""The flashcard tools are well defined, and each does what its definition says."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.demo.flashcards.learner import MORNING, Learner, actions, suggested
from tests.gateways import open_gateway
from toolcrib.demo.flashcards import flashcards, registry
from toolcrib.demo.flashcards.card_store import Card, CardStore
from toolcrib.demo.flashcards.cards import MAX_DECK_CARDS
from toolcrib.demo.flashcards.learning import Memory
from toolcrib.schemas import compile_schema
from toolcrib.sdk import AnyTool, CardId
from toolcrib.sources.functions import load_module

pytestmark = pytest.mark.anyio

TOOLS = registry.get_all()
OTTAWA = "card_ottawa"


def test_tools_match_the_page() -> None:
    assert [each.name for each in TOOLS] == [
        "get-card",
        "search-decks",
        "review-next-card",
        "review-card",
        "adjust-difficulty",
        "create-card-v2",
        "create-card",
        "set-preference",
    ]
    assert load_module("toolcrib.demo.flashcards") == TOOLS


@pytest.mark.requirement("E1", "E1a")
@pytest.mark.parametrize("made", TOOLS, ids=lambda made: made.name)
def test_nothing_falls_short(made: AnyTool) -> None:
    assert registry.validate(made) == []


@pytest.mark.parametrize("made", TOOLS, ids=lambda made: made.name)
async def test_the_examples_are_true(made: AnyTool, learner: Learner) -> None:
    output = made.definition.output_schema
    assert output is not None
    await learner.review(OTTAWA) if made.name == "adjust-difficulty" else None
    for example in made.definition.examples:
        assert compile_schema(output).faults(example.expected) == ()
        answer = await learner.ask(made.name, **example.params)
        # What is new each time differs: the ids of new cards, and the hour of the day.
        same = {"id", "due"} if not made.definition.read_only else set[str]()
        expected: Any = example.expected
        assert {key: each for key, each in answer.items() if key not in same} == {
            key: each for key, each in expected.items() if key not in same
        }


async def test_a_card_can_be_had_and_is_kept(learner: Learner) -> None:
    first = await learner.call("get-card", cardId=OTTAWA)
    again = await learner.call("get-card", cardId=OTTAWA)
    assert first["data"]["back"] == "Ottawa"
    assert (first["metadata"]["cached"], again["metadata"]["cached"]) == (False, True)
    assert actions(first["agentHints"])["review-card"]["data"] == {"cardId": OTTAWA}
    assert first["agentHints"]["relatedResources"][0]["id"] == "deck_capitals"


@pytest.mark.parametrize("name", ["get-card", "review-card", "adjust-difficulty"])
async def test_a_card_that_is_not_there_is_a_rule_of_the_domain(learner: Learner, name: str) -> None:
    more = {"review-card": {"rating": "good"}, "adjust-difficulty": {"difficulty": 5}}.get(name, {})
    refusal = await learner.refused(name, cardId="card_nowhere", **more)
    assert (refusal["code"], refusal["toolCode"]) == ("TOOL_FAILED", "CARD_NOT_FOUND")
    assert refusal["next"]["search-decks"]["priority"] == "high"


@pytest.mark.parametrize("name", ["review-next-card", "create-card-v2"])
async def test_a_deck_that_is_not_there_is_one_too(learner: Learner, name: str) -> None:
    more = {"front": "?", "back": "!"} if name == "create-card-v2" else {}
    refusal = await learner.refused(name, deckId="deck_nowhere", **more)
    assert refusal["toolCode"] == "DECK_NOT_FOUND"


@pytest.mark.requirement("E4")
async def test_ids_are_branded(learner: Learner) -> None:
    refusal = await learner.refused("get-card", cardId="deck_capitals")
    assert refusal["code"] == "INVALID_ARGUMENTS"
    schema = next(each for each in TOOLS if each.name == "get-card").definition.input_schema
    assert schema["properties"]["cardId"]["pattern"] == CardId.pattern


async def test_decks_are_searched_sorted_and_paged(learner: Learner) -> None:
    everything = await learner.ask("search-decks")
    assert everything["total"] == 3
    assert everything["nextCursor"] is None
    by_size = await learner.ask("search-decks", sortBy="cards", sortOrder="desc")
    assert [deck["cards"] for deck in by_size["decks"]] == [6, 5, 5]
    one = await learner.ask("search-decks", limit=1)
    two = await learner.ask("search-decks", limit=1, cursor=one["nextCursor"])
    three = await learner.ask("search-decks", limit=1, offset=2)
    paged = [deck for page in (one, two, three) for deck in page["decks"]]
    assert paged == everything["decks"]
    assert (two["nextCursor"], three["nextCursor"]) == ("2", None)
    assert (await learner.refused("search-decks", cursor="soon"))["toolCode"] == "BAD_CURSOR"


async def test_decks_lead_to_the_one_with_the_most_to_do(learner: Learner) -> None:
    for card in ("card_canberra", OTTAWA, "card_ankara"):
        await learner.review(card, "easy")
    told = (await learner.call("search-decks"))["agentHints"]
    assert list(actions(told)) == ["get-card", "review-next-card"]
    assert actions(told)["get-card"]["data"] == suggested("get-card", cardId="card_squares")
    assert actions(told)["review-next-card"]["data"] == suggested(
        "review-next-card", deckId="deck_arithmetic"
    )
    relevance = {each["id"]: each["relevance"] for each in told["relatedResources"]}
    assert relevance["deck_capitals"] < relevance["deck_arithmetic"]


async def test_a_page_of_decks_says_how_to_get_more(learner: Learner) -> None:
    told = (await learner.call("search-decks", limit=1))["agentHints"]
    assert list(actions(told)) == ["get-card", "review-next-card", "fetch-more"]


async def test_hints_without_deck(learner: Learner) -> None:
    answer = await learner.call("search-decks", text="cookery")
    assert answer["data"]["decks"] == []
    assert answer["agentHints"]["suggestedNextActions"]
    full = await learner.call("search-decks")
    assert answer["agentHints"]["confidence"] != full["agentHints"]["confidence"]


async def test_the_next_card_is_the_one_that_waits_longest(learner: Learner) -> None:
    first = await learner.ask("review-next-card")
    assert (first["card"]["id"], first["due"], first["nextDue"]) == ("card_canberra", 16, None)
    assert "back" not in first["card"]
    await learner.review("card_canberra", "good")
    second = await learner.ask("review-next-card", deckId="deck_capitals")
    assert (second["card"]["id"], second["due"]) == (OTTAWA, 5)
    assert datetime.fromisoformat(second["nextDue"]) == learner.due["card_canberra"]


async def test_nothing_due_names_next_due_date(learner: Learner) -> None:
    for deck in ("deck_capitals", "deck_arithmetic", "deck_http"):
        while (card := (await learner.ask("review-next-card", deckId=deck))["card"]) is not None:
            await learner.review(card["id"], "easy")
    answer = await learner.call("review-next-card")
    assert answer["data"] == {
        "card": None,
        "due": 0,
        "nextDue": min(learner.due.values()).isoformat()[:-6] + "Z",
    }
    assert answer["message"] == "Nothing is due."
    assert list(actions(answer["agentHints"])) == ["search-decks"]


async def test_a_new_card_is_due_at_once(learner: Learner) -> None:
    made = await learner.call(
        "create-card-v2",
        deckId="deck_http",
        front="What is 204?",
        back="No Content",
        hint="Silence",
        tags=["2xx"],
    )
    card = made["data"]
    assert await learner.ask("get-card", cardId=card["id"]) == card
    assert (await learner.ask("review-next-card", deckId="deck_http"))["due"] == 6
    assert made["agentHints"]["relatedResources"][0]["id"] == card["id"]
    assert "warnings" not in made["agentHints"]


async def test_the_same_question_twice_is_a_warning(learner: Learner) -> None:
    asked = {"deckId": "deck_capitals", "front": "what is the CAPITAL of canada?", "back": "Ottawa"}
    told = (await learner.call("create-card-v2", **asked))["agentHints"]
    warning = told["warnings"][0]
    assert warning["type"] == "duplicate"
    assert OTTAWA in warning["relatedIds"]
    fresh = (await learner.call("create-card-v2", **{**asked, "front": "Where is Ottawa?"}))["agentHints"]
    assert told["confidence"] < fresh["confidence"]


async def test_a_full_deck_takes_no_more(learner: Learner) -> None:
    with CardStore(learner.path, learner.time).open(learner.user) as drawer:
        for number in range(MAX_DECK_CARDS - 5):
            made = Card(
                id=f"card_{number}", deck="deck_http", front="?", back="!", memory=Memory(due=MORNING)
            )
            drawer.add(made)
    refusal = await learner.refused(
        "create-card-v2", deckId="deck_http", front="What is 204?", back="No Content"
    )
    assert refusal["toolCode"] == "DECK_FULL"
    assert "search-decks" in refusal["next"]


@pytest.mark.requirement("E13")
async def test_deprecated_tool_works_and_names_replacement(learner: Learner) -> None:
    asked = {"deckId": "deck_http", "front": "What is 204?", "back": "No Content"}
    answer = await learner.call("create-card", **asked)
    assert answer["data"]["front"] == asked["front"]
    said = [each for each in answer["agentHints"]["warnings"] if each["type"] == "deprecation"]
    assert len(said) == 1
    assert "create-card-v2" in json.dumps(said)
    gone = next(each for each in TOOLS if each.name == "create-card").definition.deprecated
    assert gone is not None
    assert (gone.since, gone.replacement) == ("2.0.0", "create-card-v2")
    assert gone.announced is not None
    assert gone.removal_date is not None
    notice = datetime.fromisoformat(gone.removal_date) - datetime.fromisoformat(gone.announced)
    assert notice >= timedelta(days=90)


async def test_difficulty_can_be_set_and_undone(learner: Learner) -> None:
    refusal = await learner.refused("adjust-difficulty", cardId=OTTAWA, difficulty=5)
    assert refusal["toolCode"] == "CARD_NOT_REVIEWED"
    await learner.review(OTTAWA)
    answer = await learner.call("adjust-difficulty", cardId=OTTAWA, difficulty=9)
    before = answer["data"]["before"]
    undo = actions(answer["agentHints"])["adjust-difficulty"]
    assert undo["data"] == suggested("adjust-difficulty", cardId=OTTAWA, difficulty=before)
    assert (await learner.ask("adjust-difficulty", **undo["data"]["arguments"]))["before"] == 9


async def test_learners_do_not_see_each_other(learner: Learner) -> None:
    made = await learner.ask("create-card-v2", deckId="deck_http", front="What is 204?", back="No Content")
    learner.user = "bob"
    assert (await learner.refused("get-card", cardId=made["id"]))["toolCode"] == "CARD_NOT_FOUND"
    learner.user = None
    assert (await learner.refused("get-card", cardId=made["id"]))["toolCode"] == "CARD_NOT_FOUND"
    assert (await learner.ask("review-next-card"))["due"] == 16


async def test_they_are_served_over_http_with_their_permissions(db: Path) -> None:
    async with open_gateway(tools=flashcards(db).get_all()) as open_doors:
        reviewed = await open_doors.call(
            "review-card", {"cardId": OTTAWA, "rating": "good", "responseMs": 900}
        )
        assert reviewed.json["agentHints"]["metadata"]["generatedBy"] == "flashcards"
        reader = await open_doors.key("reader", permissions=["cards:read"])
        assert (await open_doors.call("get-card", {"cardId": OTTAWA}, key=reader)).status == 200
        denied = await open_doors.call("review-card", {"cardId": OTTAWA, "rating": "good"}, key=reader)
        assert denied.status == 403


async def test_the_demonstration_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_gateway(demo=True) as open_doors:
        answer = await open_doors.call("flashcards:get-card", {"cardId": OTTAWA})
    assert answer.json["data"]["back"] == "Ottawa"
    assert (tmp_path / ".toolcrib" / "flashcards.db").exists()


async def test_demo_without_library_omits_flashcards_and_warns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolcrib.runtime.sources.find_spec", {"fsrs": None}.get)
    async with open_gateway(demo=True) as open_doors:
        answer = await open_doors.call("get-card", {"cardId": OTTAWA})
        assert (await open_doors.call("add-numbers", {"numbers": [1]})).status == 200
    assert answer.code == "TOOL_NOT_FOUND"
    assert "install toolcrib[demo]" in caplog.text
