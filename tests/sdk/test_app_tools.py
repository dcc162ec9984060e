"""A tool of an app, written by hand: its definition and its handler."""

from typing import Any

import pytest

from tests.texts import matches
from toolcrib.apps.definition import tool_faults
from toolcrib.sdk import AppContext, HandledTool, ToolDefinitionError, create_tool


async def add(arguments: dict[str, Any], context: AppContext) -> str:
    """A handler."""
    return f"{context.user_id}: {arguments['text']}"


@pytest.mark.requirement("D15")
async def test_definition_and_handler() -> None:
    parameters = {
        "text": {"type": "string", "description": "What to remind about"},
        "time": {"type": "string", "description": "When (ISO 8601)"},
    }
    tool = create_tool(
        name="add_reminder",
        description="Add a reminder for the user",
        parameters=parameters,
        required=["text"],
        activation_phrases=["remind me", "set a reminder"],
        category="productivity",
        handler=add,
    )
    assert isinstance(tool, HandledTool)
    assert (tool.name, repr(tool)) == ("add_reminder", "<HandledTool add_reminder>")
    assert tool.definition == {
        "name": "add_reminder",
        "description": "Add a reminder for the user",
        "inputSchema": {"type": "object", "properties": parameters, "required": ["text"]},
        "mentraExtensions": {
            "activationPhrases": ["remind me", "set a reminder"],
            "category": "productivity",
        },
    }
    assert tool_faults([tool.definition]) == ()
    assert await tool.handler({"text": "milk"}, AppContext(user_id="ada")) == "ada: milk"


def test_phrases_by_language_without_defaults() -> None:
    phrases = {"en": ("remind me",), "de": ["erinnere mich"]}
    tool = create_tool(name="add", handler=add, activation_phrases=phrases)
    assert tool.definition["mentraExtensions"] == {
        "activationPhrases": {"en": ["remind me"], "de": ["erinnere mich"]}
    }
    bare = create_tool(name="add", handler=add)
    assert bare.definition == {
        "name": "add",
        "description": "",
        "inputSchema": {"type": "object", "properties": {}, "required": []},
    }


@pytest.mark.requirement("D15")
@pytest.mark.parametrize("name, said", [("a:b", "colon"), ("", "needs a name"), (None, "needs a name")])
def test_names_that_are_none(name: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        create_tool(name=name, handler=add)


def test_a_handler_can_be_called() -> None:
    given: Any = "add"
    with pytest.raises(ToolDefinitionError) as raised:
        create_tool(name="add", handler=given)
    assert matches("library", "a handler can be called", str(raised.value))
