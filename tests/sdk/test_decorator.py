"""A function becomes a tool with a complete definition, and stays a function."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolcrib.model import Deprecation, Example, RateLimit, Slow, Speech
from toolcrib.sdk import FunctionTool, ToolContext, ToolResult, create_tool


class Card(BaseModel):
    """A card."""

    card_id: str
    front: str


@create_tool(
    title="Card",
    category="query",
    response_time="fast",
    cache_ttl=3600,
    shared_cache=True,
    idempotent=True,
    permissions=["cards:read"],
    tags=["cards", "content"],
    version="1.2.3",
    rate_limit={"maxCalls": 60, "windowMs": 60000},
    examples=[{"description": "By id", "params": {"card_id": "card_123"}, "expectedResult": {"front": "a"}}],
    deprecated={"since": "1.2.0", "replacement": "get-card-v2", "removalDate": "2031-01-31"},
    timeout=2.5,
    speech_field="front",
    speech_template="It says {front}.",
    slow=(2.0, "One moment…"),
    aliases=["fetch-card"],
    energy_cost=2,
)
async def get_card(
    card_id: Annotated[str, Field(description="Which card.", pattern="^card_")], ctx: ToolContext
) -> Card:
    """Retrieve a card by its id. Use it when the content of a card is needed."""
    return Card(card_id=card_id, front=f"for {ctx.user_id}")


@pytest.mark.requirement("E1")
def test_definition_has_all_author_options() -> None:
    made = get_card.definition
    assert (made.name, made.source, made.local, get_card.name) == (":get-card", "", "get-card", "get-card")
    assert made.title == "Card"
    assert made.description == "Retrieve a card by its id. Use it when the content of a card is needed."
    assert (made.category, made.response_time, made.version) == ("query", "fast", "1.2.3")
    assert (made.cache_ttl, made.shared_cache, made.idempotent, made.destructive) == (3600, True, True, False)
    assert made.permissions == frozenset({"cards:read"})
    assert (made.tags, made.aliases) == (("cards", "content"), ("fetch-card",))
    assert made.rate_limit == RateLimit(60, 60000)
    expected = {"front": "a"}
    assert made.examples == (Example(description="By id", params={"card_id": "card_123"}, expected=expected),)
    assert made.deprecated == Deprecation(since="1.2.0", replacement="get-card-v2", removal_date="2031-01-31")
    assert made.speech == Speech(template="It says {front}.", field="front")
    assert made.slow == Slow(threshold=2.0, message="One moment…")
    assert (made.timeout, made.energy_cost) == (2.5, 2)


def test_parameters_become_json_schema_without_the_context() -> None:
    assert get_card.definition.input_schema == {
        "type": "object",
        "properties": {"card_id": {"type": "string", "description": "Which card.", "pattern": "^card_"}},
        "required": ["card_id"],
        "additionalProperties": False,
    }
    assert get_card.signature.context == "ctx"


def test_the_return_type_becomes_the_output_schema() -> None:
    assert get_card.definition.output_schema == {
        "description": "A card.",
        "type": "object",
        "properties": {"card_id": {"type": "string"}, "front": {"type": "string"}},
        "required": ["card_id", "front"],
    }


async def test_it_can_still_be_called_as_the_function_it_is() -> None:
    card = await get_card("card_1", ToolContext(user_id="u1"))
    assert card == Card(card_id="card_1", front="for u1")
    assert list(inspect.signature(get_card).parameters) == ["card_id", "ctx"]
    assert repr(get_card) == "<FunctionTool get-card>"


def test_binding_gives_it_a_source() -> None:
    bound = get_card.bind("cards")
    assert (bound.name, bound.source, bound.local, bound.family) == (
        "cards:get-card",
        "cards",
        "get-card",
        "function",
    )
    assert get_card.bind("crib", "core").family == "core"
    assert get_card.definition.source == ""


@pytest.mark.requirement("E12")
def test_defaults_are_the_safe_choice() -> None:
    @create_tool
    def touch() -> None:
        """Do something."""

    made = touch.definition
    assert (made.category, made.response_time, made.version) == ("mutation", "medium", "1.0.0")
    assert (made.idempotent, made.cache_ttl, made.permissions) == (False, None, frozenset())
    assert made.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert (made.timeout, made.rate_limit, made.deprecated, made.slow) == (None, None, None, None)


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "category,expected", [("query", True), ("analysis", True), ("mutation", False), ("generation", False)]
)
def test_query_is_idempotent_by_default(
    category: Literal["query", "analysis", "mutation", "generation"], expected: bool
) -> None:
    @create_tool(category=category)
    def look_up() -> None:
        """Look."""

    assert look_up.definition.idempotent is expected


@pytest.mark.parametrize(
    "name,expected",
    [
        ("get_card", "get-card"),
        ("getCard", "get-card"),
        ("_get__card_", "get-card"),
        ("add2", "add2"),
        ("parse_v2", "parse-v2"),
    ],
)
def test_the_name_comes_from_the_function(name: str, expected: str) -> None:
    def function() -> None: ...

    function.__name__ = name
    assert create_tool(function).name == expected


def test_a_name_and_description_that_are_given_win() -> None:
    @create_tool(name="read-card", description="Reads a card.")
    def whatever() -> None:
        """Something else."""

    assert (whatever.name, whatever.definition.description) == ("read-card", "Reads a card.")


def test_values_of_the_model_are_taken_as_they_are() -> None:
    limit, example = RateLimit(5, 1000), Example(description="x", params={})
    deprecated, slow = Deprecation(since="1.0.0"), Slow(threshold=1, message="Wait.")

    @create_tool(rate_limit=limit, examples=[example], deprecated=deprecated, slow=slow)
    def act() -> None: ...

    made = act.definition
    assert (made.rate_limit, made.examples, made.deprecated, made.slow) == (
        limit,
        (example,),
        deprecated,
        slow,
    )


@dataclass
class Point:
    x: int
    y: int


class Box(TypedDict):
    width: int
    note: NotRequired[str]


class Node(BaseModel):
    children: list["Node"]


def give_model() -> ToolResult[Card]: ...
def give_dataclass() -> Point: ...
def give_typed_dict() -> Box: ...
def give_dict() -> dict[str, int]: ...
def give_recursive() -> Node: ...


@pytest.mark.parametrize("function", [give_model, give_dataclass, give_typed_dict, give_dict, give_recursive])
def test_objects_have_an_output_schema(function: Any) -> None:
    output = create_tool(function).definition.output_schema
    assert output is not None
    assert output["type"] == "object"


def give_text() -> str: ...
def give_list() -> list[Card]: ...
def give_maybe() -> Card | None: ...
def give_nothing() -> None: ...
def give_any() -> Any: ...
def give_result() -> ToolResult: ...  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
def give_unsaid(): ...  # noqa: ANN201


NO_OBJECTS: list[Any] = [
    give_text,
    give_list,
    give_maybe,
    give_nothing,
    give_any,
    give_result,
    give_unsaid,
]


@pytest.mark.parametrize("function", NO_OBJECTS)
def test_non_object_result_has_no_output_schema(function: Any) -> None:
    assert create_tool(function).definition.output_schema is None


def test_decorators_know_sync_from_async() -> None:
    class Callable:
        async def __call__(self) -> int:
            return 1

    def plain() -> None: ...

    assert get_card.is_async
    assert not create_tool(plain).is_async
    assert create_tool(name="call-it")(Callable()).is_async


def test_bound_methods_are_tools_too() -> None:
    class Shelf:
        def count_books(self, section: str) -> int:
            return len(section)

    made: FunctionTool[[str], int] = create_tool(Shelf().count_books)
    assert list(made.definition.input_schema["properties"]) == ["section"]
    assert made("abc") == 3
