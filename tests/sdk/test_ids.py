"""Branded ids: text with a pattern, and a type of its own that cannot stand in for another."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter
from pydantic_core import to_jsonable_python

from tests.texts import matches
from toolcrib import Crib
from toolcrib.sdk import BrandedId, CardId, DeckId, SessionId, ToolDefinitionError, UserId, create_tool

MIXED = """
from toolcrib.sdk import CardId, DeckId, create_tool


@create_tool
def move_card(card_id: CardId, deck_id: DeckId) -> CardId:
    return card_id


move_card(CardId("card_1"), DeckId("deck_2"))
move_card(DeckId("deck_2"), CardId("card_1"))
move_card("card_1", DeckId("deck_2"))
length: int = len(CardId("card_1").upper())
"""


class BookId(BrandedId, pattern=r"^\d{3}-\d$"):
    """A book, by its own kind of number."""


class Note(BrandedId):
    """A note; its ids are another system's."""


class BackCardId(CardId, description="The back of a card."):
    """A card again."""


@pytest.mark.requirement("E4")
def test_the_pattern_is_in_the_schema() -> None:
    def move_card(card_id: CardId, deck_id: Annotated[DeckId, Field(description="Where to.")]) -> CardId: ...

    made = create_tool(move_card).definition
    assert made.input_schema["properties"] == {
        "card_id": {
            "type": "string",
            "pattern": "^card_[A-Za-z0-9_-]{1,64}$",
            "description": "The id of a card, such as card_123.",
        },
        "deck_id": {
            "type": "string",
            "pattern": "^deck_[A-Za-z0-9_-]{1,64}$",
            "description": "Where to.",
        },
    }
    assert TypeAdapter(CardId).json_schema(mode="serialization")["pattern"] == CardId.pattern


@pytest.mark.requirement("E4")
async def test_handlers_get_ids_of_the_right_kind() -> None:
    got: list[Any] = []

    @create_tool(category="query")
    async def find_cards(card_id: CardId, deck_ids: list[DeckId], user_id: UserId | None = None) -> CardId:
        got.extend([card_id, *deck_ids, user_id])
        return card_id

    async with Crib(tools=[find_cards]) as crib:
        arguments = {"card_id": "card_1", "deck_ids": ["deck_2", "deck_3"], "user_id": "ada@example.org"}
        result = await crib.call("find-cards", arguments)
        wrong = await crib.call("find-cards", {"card_id": "deck_1", "deck_ids": []})
    assert got == ["card_1", "deck_2", "deck_3", "ada@example.org"]
    assert [type(each) for each in got] == [CardId, DeckId, DeckId, UserId]
    assert (result.data, type(result.data)) == ("card_1", str)
    assert wrong.problem is not None
    assert (wrong.problem.code, wrong.problem.path) == ("INVALID_ARGUMENTS", "arguments.card_id")


@pytest.mark.requirement("E4")
@pytest.mark.parametrize(
    "kind,value",
    [
        (CardId, "card_123"),
        (DeckId, "deck_a-b_c"),
        (UserId, "u1"),
        (SessionId, "0af76519-16cd-43dd-8448-eb211c80319c"),
        (BookId, "123-4"),
        (Note, "note:7@shelf"),
        (BackCardId, "card_1"),
    ],
)
def test_an_id_is_made_of_text_that_fits(kind: Any, value: str) -> None:
    made = kind(value)
    assert (made, type(made), repr(made)) == (value, kind, f"{kind.__name__}({value!r})")
    assert json.dumps(made) == f'"{value}"'
    assert to_jsonable_python({"id": made}) == {"id": value}
    assert TypeAdapter(kind).validate_python(value) == made


@pytest.mark.requirement("E4")
@pytest.mark.parametrize(
    "kind,value",
    [
        (CardId, "deck_1"),
        (CardId, "card_"),
        (CardId, "card_1\n"),
        (CardId, " card_1"),
        (CardId, "card_" + "x" * 65),
        (UserId, ""),
        (UserId, "x" * 129),
        (UserId, "-dash"),
        (BookId, "12-3"),
    ],
)
def test_text_that_does_not_fit_is_refused(kind: Any, value: str) -> None:
    with pytest.raises(ValueError, match=f"is not a {kind.__name__}: it must match"):
        kind(value)
    with pytest.raises(ValueError, match="should match pattern"):
        TypeAdapter(kind).validate_python(value)


@given(text=st.text(max_size=12) | st.from_regex(CardId.pattern))
def test_python_and_schema_accept_the_same_ids(text: str) -> None:
    def taken(make: Any) -> bool:
        try:
            return make(text) == text
        except ValueError:
            return False

    assert taken(CardId) == taken(TypeAdapter(CardId).validate_python)


def test_a_kind_must_be_made_first() -> None:
    with pytest.raises(TypeError) as raised:
        BrandedId("card_1")
    assert matches("library", "a kind must be made first", str(raised.value))

    def act(card_id: BrandedId) -> None: ...

    with pytest.raises(ToolDefinitionError) as raised:
        create_tool(act)
    assert matches("library", "a kind must be made first 2", str(raised.value))


def test_a_kind_that_cannot_be_meant_is_refused() -> None:
    with pytest.raises(TypeError) as raised:
        type("Odd", (BrandedId,), {}, prefix="a", pattern="^b$")
    assert matches("library", "a kind that cannot be meant is refused", str(raised.value))
    with pytest.raises(TypeError) as raised:
        type("Odd", (BrandedId,), {}, prefix="A_")


def test_a_kind_of_a_kind_keeps_its_pattern() -> None:
    assert (BackCardId.pattern, BackCardId.description) == (CardId.pattern, "The back of a card.")
    assert (Note.description, BookId.pattern) == ("", r"^\d{3}-\d$")


@pytest.mark.slow
@pytest.mark.requirement("E4")
def test_mixing_kinds_up_fails_type_checking(tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.py"
    mixed.write_text(MIXED, "utf-8")
    checker = Path(sys.executable).with_name("basedpyright")
    ran = subprocess.run([checker, "--outputjson", mixed], capture_output=True, check=False, timeout=120)
    found = json.loads(ran.stdout)["generalDiagnostics"]
    errors = [(each["range"]["start"]["line"], each["rule"]) for each in found if each["severity"] == "error"]
    wrong = MIXED.splitlines().index('move_card(DeckId("deck_2"), CardId("card_1"))')
    rule = "reportArgumentType"
    assert sorted(errors) == [(wrong, rule), (wrong, rule), (wrong + 1, rule)]
