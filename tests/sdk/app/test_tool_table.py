"""The tools of an app: registered by name, and described in the gateway's format."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from tests.sdk.app.fake_gateway import an_app, one
from tests.texts import matches
from toolcrib.apps.definition import tool_faults
from toolcrib.sdk import AppContext, FunctionTool, HandledTool, ToolDefinitionError, create_tool


class Item(BaseModel):
    """Something to buy."""

    name: Annotated[str, Field(description="What it is")]
    count: Annotated[int, Field(description="How many", ge=1)] = 1
    kind: Annotated[Literal["food", "other"] | None, Field(description="Of which kind")] = None


class Knot(BaseModel):
    """Something that holds others of its kind."""

    inner: "list[Knot]" = []


def buy(
    items: Annotated[list[Item], Field(description="What to buy")],
    first: Annotated[Item | None, Field(description="What to buy first")] = None,
    notes: Annotated[dict[str, Item], Field(description="More by name")] | None = None,
    ctx: AppContext | None = None,
) -> int:
    """Buy things."""
    return len(items)


def handled(name: str) -> HandledTool:
    """A tool with a handler."""
    return create_tool(name=name, description="Does nothing.", handler=one)


@pytest.mark.requirement("D15")
def test_definitions_come_in_the_order_of_the_tools() -> None:
    app = an_app()
    first = app.register_tool(handled("one"), activation_phrases=["first"], category="utility")
    assert first.definition.get("mentraExtensions") is None
    app.register_tool(create_tool(buy), activation_phrases={"en": ["buy"]})
    one, two = app.get_tool_definitions()
    assert one["mentraExtensions"] == {"activationPhrases": ["first"], "category": "utility"}
    assert (two["name"], two["description"]) == ("buy", "Buy things.")
    assert two["mentraExtensions"] == {"activationPhrases": {"en": ["buy"]}}
    assert tool_faults(app.get_tool_definitions()) == ()


def buy_more(
    name: Annotated[str, Field(description="What to buy")],
    **extras: Annotated[str, Field(description="More")],
) -> int:
    """Buy a thing."""
    return len(name) + len(extras)


@pytest.mark.requirement("E20")
def test_published_definition_refuses_unknown_arguments() -> None:
    app = an_app()
    app.register_tool(create_tool(buy))
    app.register_tool(create_tool(buy_more))
    closed, extensible = (each["inputSchema"] for each in app.get_tool_definitions())
    assert closed["additionalProperties"] is False
    assert extensible["additionalProperties"]["type"] == "string"
    assert tool_faults(app.get_tool_definitions()) == ()


def test_typed_function_yields_full_definition() -> None:
    app = an_app()
    app.register_tool(create_tool(buy))
    (definition,) = app.get_tool_definitions()
    schema = definition["inputSchema"]
    assert set(schema["properties"]) == {"items", "first", "notes"}
    assert schema["required"] == ["items"]
    item = schema["properties"]["items"]["items"]
    assert item["required"] == ["name"]
    assert item["properties"]["kind"] == {
        "type": "string",
        "enum": ["food", "other"],
        "description": "Of which kind",
    }
    assert schema["properties"]["first"]["properties"] == item["properties"]
    assert schema["properties"]["first"]["description"] == "What to buy first"
    assert "default" not in schema["properties"]["first"]
    assert schema["properties"]["notes"]["additionalProperties"]["properties"] == item["properties"]
    assert "$" not in str(definition)


def test_a_type_that_holds_itself_is_refused() -> None:
    def tie(knot: Knot) -> None:
        """Tie."""

    with pytest.raises(ToolDefinitionError) as raised:
        an_app().register_tool(create_tool(tie))
    assert matches("library", "a type that holds itself is refused", str(raised.value))


@pytest.mark.requirement("D15")
def test_names_with_a_colon_and_names_that_are_taken() -> None:
    app = an_app()
    given = {"name": "a:b", "description": "", "inputSchema": {"type": "object"}}
    with pytest.raises(ToolDefinitionError, match="colon"):
        app.register_tool(HandledTool(given, one))
    app.register_tool(handled("add"))
    with pytest.raises(ToolDefinitionError, match="already"):
        app.register_tool(handled("add"))
    assert [each["name"] for each in app.get_tool_definitions()] == ["add"]


def test_the_decorator() -> None:
    app = an_app()

    @app.tool(name="say-it", description="Say it.", activation_phrases=["say"], category="other")
    def say(text: Annotated[str, Field(description="What")]) -> str:
        return text

    made: Any = say
    assert isinstance(made, FunctionTool)
    assert say("x") == "x"
    (definition,) = app.get_tool_definitions()
    assert (definition["name"], definition["description"]) == ("say-it", "Say it.")
    assert definition["mentraExtensions"] == {"activationPhrases": ["say"], "category": "other"}
