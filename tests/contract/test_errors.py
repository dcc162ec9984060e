"""Errors have one of three classes and advice, and hide their causes."""

import sqlite3
from typing import Any

import pytest

from tests.contract.asking import FACES, Answer, asking
from tests.hint_fields import HINT_FIELD_SET
from toolcrib import BusinessRuleError, create_tool, hints

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E11")]

BEHIND = (
    "SELECT pin FROM cards WHERE owner = 'ann'",
    "/srv/cards/private.db",
    "hunter2",
    "postgres://cards:hunter2@10.0.0.7:5432/cards",
)
SHOWN = ("Traceback", "Error(", "OperationalError", ".py", "line ")


class Odd:
    """A value that is not JSON."""

    def __repr__(self) -> str:
        return "; ".join(BEHIND)


@create_tool(category="query", response_time="slow")
async def find_card(card_id: int) -> str:
    """Find a card, or fail in one of several ways."""
    if card_id == 1:
        raise BusinessRuleError("CARD_LOCKED", "The card is locked.", hints=hints.failed("It is locked."))
    if card_id == 2:
        raise sqlite3.OperationalError("; ".join(BEHIND))
    if card_id == 3:
        try:
            raise FileNotFoundError(BEHIND[1])
        except OSError as error:
            raise BusinessRuleError("CARD_LOST", "The card is lost.") from error
    if card_id == 4:
        return Odd()  # pyright: ignore[reportReturnType]
    raise SystemExit("; ".join(BEHIND))


WAYS: dict[int | str, tuple[str, str]] = {
    "one": ("INVALID_ARGUMENTS", "validation"),
    1: ("TOOL_FAILED", "business"),
    2: ("HANDLER_ERROR", "system"),
    3: ("TOOL_FAILED", "business"),
    4: ("CONTRACT_VIOLATION", "system"),
    5: ("HANDLER_ERROR", "system"),
}


def told(answer: Answer) -> dict[str, Any]:
    """The error of an otherwise complete answer."""
    assert answer.error is not None
    assert answer.hints.keys() >= HINT_FIELD_SET
    assert answer.hints["suggestedNextActions"] or answer.hints["contextNeeded"], "it says what to do"
    assert answer.metadata["traceId"]
    return answer.error


@pytest.mark.requirement("E6", "E9")
async def test_every_error_has_class_code_and_message_everywhere() -> None:
    async with asking(find_card) as asker:
        for face in FACES:
            for card, (code, kind) in WAYS.items():
                error = told(await asker.ask(face, "find-card", {"card_id": card}))
                assert (error["code"], error["class"]) == (code, kind), (face, card)
                assert error["message"]
                assert isinstance(error["retryable"], bool)


async def test_tool_error_is_passed_on_with_its_code() -> None:
    async with asking(find_card) as asker:
        for face in FACES:
            answer = await asker.ask(face, "find-card", {"card_id": 1})
            error = told(answer)
            assert (error["toolCode"], error["message"]) == ("CARD_LOCKED", "The card is locked.")
            assert "locked" in answer.hints["reasoning"]
            wrong = told(await asker.ask(face, "find-card", {"card_id": "one"}))
            assert wrong["path"] == "arguments.card_id"
            assert "integer" in wrong["message"]


async def test_causes_of_errors_are_shown_on_no_frontend() -> None:
    async with asking(find_card) as asker:
        for face in FACES:
            for card in (2, 3, 4, 5):
                answer = await asker.ask(face, "find-card", {"card_id": card})
                assert [part for part in (*BEHIND, *SHOWN) if part in answer.raw] == [], (face, card)


async def test_tool_exceptions_never_reach_the_caller() -> None:
    async with asking(find_card) as asker:
        assert asker.own is not None
        cards: tuple[Any, ...] = (1, 2, 3, 4, 5, "one", None, [], {})
        for card in cards:
            result = await asker.own.call("find-card", {"card_id": card})
            assert result.problem is not None
            assert result.data is None
