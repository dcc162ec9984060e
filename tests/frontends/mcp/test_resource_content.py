"""An answer about resources or prompts is passed on where every client can take it, and only then."""

from typing import Any

import pytest

from toolcrib.mcp.content import completion_values, prompt_messages, resource_contents
from toolcrib.mcp.revisions import MODERN

TEXT = {"type": "text", "text": "hello"}


@pytest.mark.parametrize(
    "held",
    [
        [],
        [{"uri": "x://1", "text": ""}],
        [{"uri": "x://1", "blob": "AA==", "mimeType": "image/png", "_meta": {}}],
    ],
)
def test_contents_that_are_right(held: Any) -> None:
    assert resource_contents({"contents": held}, MODERN) == {"contents": held}


@pytest.mark.parametrize(
    "held", [None, {}, "x", [7], [{"uri": "x://1"}], [{"text": "x"}], [{"uri": 7, "text": "x"}]]
)
def test_contents_that_are_not(held: Any) -> None:
    assert resource_contents({"contents": held}, MODERN) is None


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"messages": {}},
        {"messages": ["hello"]},
        {"messages": [], "description": 7},
        {"messages": [{"role": "system", "content": TEXT}]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": [TEXT]}]},
        {"messages": [{"role": "user", "content": {"type": "text"}}]},
    ],
)
def test_messages_that_are_not_right(said: Any) -> None:
    assert prompt_messages(said, MODERN) is None


def test_messages_that_are() -> None:
    said = {"messages": [{"role": "assistant", "content": TEXT, "vendor": 1}]}
    assert prompt_messages(said, MODERN) == said
    assert prompt_messages({**said, "description": "d"}, MODERN) == {**said, "description": "d"}


@pytest.mark.parametrize(
    "held",
    [
        None,
        [],
        {},
        {"values": "x"},
        {"values": [1]},
        {"values": [], "total": "1"},
        {"values": [], "hasMore": 1},
    ],
)
def test_suggestions_that_are_none(held: Any) -> None:
    assert completion_values({"completion": held}, MODERN) is None


def test_suggestions_are_limited() -> None:
    few = {"values": ["a"], "total": 1, "hasMore": False}
    assert completion_values({"completion": few}, MODERN) == {"completion": few}
    many = completion_values({"completion": {"values": ["a"] * 101, "total": 101}}, MODERN)
    assert many == {"completion": {"values": ["a"] * 100, "total": 101, "hasMore": True}}
