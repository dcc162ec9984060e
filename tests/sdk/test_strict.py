"""`@tool` requires a complete definition and reports all faults; `create_tool` accepts less."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc

from toolcrib.sdk import BrandedId, Registry, ToolDefinitionError, create_tool, tool
from toolcrib.sdk.checks import findings


class ShelfId(BrandedId, prefix="shelf", description="Which shelf."):
    """A shelf."""


EXAMPLE = {
    "description": "The first shelf",
    "params": {"shelf_id": "shelf_1"},
    "expectedResult": {"books": 2},
}
GOOD: dict[str, Any] = {
    "category": "query",
    "response_time": "fast",
    "tags": ["books"],
    "examples": [EXAMPLE],
}
SAID = "Count the books on a shelf and return their number. Use it when someone asks how many there are."


def count_books(shelf_id: ShelfId) -> dict[str, int]:
    """Count the books on a shelf and return their number. Use it when someone asks how many there are."""
    return {"books": len(shelf_id)}


def good(**more: Any) -> dict[str, Any]:
    return {**GOOD, **more}


def refusal(function: Any, **options: Any) -> str:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(**good(**options))(function)
    return str(caught.value)


@pytest.mark.requirement("E1", "E1a")
def test_a_good_definition_is_taken() -> None:
    made = tool(**GOOD)(count_books)
    assert made.definition.permissions == frozenset()
    assert made.definition.description == SAID
    assert Registry().validate(made) == []


@pytest.mark.requirement("E1")
@pytest.mark.parametrize(
    "options,rule,said",
    [
        ({"name": "count"}, "name", "'count' is not kebab-case verb-noun"),
        ({"name": "countBooks"}, "name", "not kebab-case"),
        ({"name": "count_books"}, "name", "not kebab-case"),
        ({"name": "count--books"}, "name", "not kebab-case"),
        ({"name": "9-books"}, "name", "not kebab-case"),
        ({"name": "bücher-zählen"}, "name", "not kebab-case"),
        ({"description": "Use it to count."}, "description", "has 16 characters: describe in 50 or more"),
        ({"tags": []}, "tags", "there is no tag"),
        ({"examples": []}, "examples", "there is no example"),
        ({"examples": [{**EXAMPLE, "description": ""}]}, "examples", "example 1 has no description"),
        ({"examples": [{**EXAMPLE, "expectedResult": None}]}, "examples", "has no expectedResult"),
        ({"deprecated": {"since": "2.0.0", "replacement": "count-all"}}, "deprecated", "has no removalDate"),
        ({"deprecated": {"since": "2.0.0", "removalDate": "2999-01-31"}}, "deprecated", "no replacement"),
    ],
)
def test_required_definition_parts(options: Any, rule: str, said: str) -> None:
    assert said in refusal(count_books, **options)
    lenient = create_tool(count_books, **good(**options))
    assert [each.rule for each in findings(lenient.definition, "shortfall")] == [rule]


@pytest.mark.requirement("E1a")
@pytest.mark.parametrize(
    "sentence",
    [
        "Use it at the door.",
        "Good when it rains.",
        "It is used by gardeners.",
        "Takes a plant, such as a rose.",
        "For example for roses.",
        "Takes plants, e.g. roses.",
        "Useful at night.",
    ],
)
def test_a_description_names_an_example_use(sentence: str) -> None:
    plain = "Count the books on a shelf and return their number, which may be nought."
    assert "does not say when to use it" in refusal(count_books, description=plain)
    assert tool(**good(description=f"{plain} {sentence}"))(count_books).name == "count-books"


class Label(BaseModel):
    """What is written on a book."""

    text: str
    size: Annotated[int, Field(description="How large.")] = 1


def undescribed(count: Annotated[int, Field(ge=1)]) -> None: ...
def nested(label: Label) -> None: ...
def listed(labels: Annotated[list[Label], Field(description="All of them.", max_length=3)]) -> None: ...
def whole(params: Label) -> None: ...


@pytest.mark.requirement("E1a")
@pytest.mark.parametrize(
    "function,path",
    [(undescribed, "count"), (nested, "label.text"), (listed, "labels[].text"), (whole, "text")],
)
def test_every_parameter_is_described(function: Any, path: str) -> None:
    said = refusal(function, description=SAID, examples=[])
    assert f"the parameter {path} has no description" in said
    assert "add it under Args: in the docstring" in said


Text = Annotated[str, "Some text."]


def one_id(id: Text) -> None: ...
def named_id(book_id: Text) -> None: ...
def named_ids(book_ids: Annotated[list[str], Field(description="Which.", max_length=5)]) -> None: ...
def camel_id(bookId: Text) -> None: ...  # noqa: N803
def maybe_id(book_id: Annotated[str | None, "Which."] = None) -> None: ...


@pytest.mark.requirement("E1a")
@pytest.mark.parametrize("function", [one_id, named_id, named_ids, camel_id, maybe_id])
def test_an_id_that_takes_any_text_is_refused(function: Any) -> None:
    said = refusal(function, name="find-book", description=SAID, examples=[])
    assert "is an id that accepts any text: use a branded id" in said


def patterned_id(book_id: Annotated[str, Field(description="Which.", pattern="^b")]) -> None: ...
def formatted_id(book_id: Annotated[str, Field(json_schema_extra={"format": "uuid"})]) -> None: ...
def chosen_id(book_id: Literal["a", "b"]) -> None: ...
def branded_ids(shelf_ids: Annotated[list[ShelfId], Field(description="Which.", max_length=5)]) -> None: ...
def no_id(video: Text, valid: Text, said: Text) -> None: ...


@pytest.mark.parametrize("function", [patterned_id, formatted_id, chosen_id, branded_ids, no_id])
def test_an_id_with_a_shape_is_as_good_as_a_branded_one(function: Any) -> None:
    assert "ids" not in {each.rule for each in findings(create_tool(function).definition, "shortfall")}


def any_number(count: Annotated[int, "How many."]) -> None: ...
def maybe_number(count: Annotated[float | None, "How many."] = None) -> None: ...
def any_list(names: Annotated[list[str], "Which."]) -> None: ...


@pytest.mark.requirement("E1a")
@pytest.mark.parametrize(
    "function,said",
    [
        (any_number, "the number count has no bound"),
        (maybe_number, "the number count has no bound"),
        (any_list, "the list names has no bound"),
    ],
)
def test_numbers_and_lists_have_bounds(function: Any, said: str) -> None:
    assert said in refusal(function, description=SAID, examples=[])


def half_open(count: Annotated[int, Field(gt=0)], share: Annotated[float, Field(lt=1)]) -> None: ...
def fixed(count: Literal[1, 2], pair: tuple[int, int], flag: bool) -> None: ...


@pytest.mark.parametrize("function", [half_open, fixed])
def test_one_bound_is_enough_and_a_choice_has_one(function: Any) -> None:
    assert "bounds" not in {each.rule for each in findings(create_tool(function).definition, "shortfall")}


def test_text_without_a_bound_is_only_advised_against() -> None:
    def say_aloud(words: str, tone: Annotated[str, Field(max_length=9)]) -> None: ...

    definition = create_tool(say_aloud).definition
    assert [each.message.split(":")[0] for each in findings(definition, "advice")] == [
        "the text words may have any length"
    ]
    assert all("any length" not in each.message for each in findings(definition, "shortfall"))


@pytest.mark.requirement("E1a", "E2")
def test_all_shortcomings_are_reported_together() -> None:
    def act(count: int, *more: int) -> None:
        """Act."""

    with pytest.raises(ToolDefinitionError) as caught:
        tool(cache_ttl=5, permissions=["all"], timeout=-1, tags="books", colour="red")(act)  # pyright: ignore[reportCallIssue]
    said = str(caught.value)
    assert said.startswith("tool act: 10 faults\n  - ")
    assert {each.rule for each in caught.value.findings} == {
        *("options", "tags", "signature", "cache", "permissions", "numbers"),
        *("name", "description", "uses", "examples"),
    }
    assert all(each.message in said for each in caught.value.findings)


@pytest.mark.requirement("E1a")
def test_lenient_tool_registers_with_report() -> None:
    registry = Registry()

    def act(count: int, card_id: str) -> None: ...

    registry.register(create_tool(act))
    found = registry.validate(create_tool(act))
    assert {each.rule for each in found} == {
        *("name", "description", "uses", "parameters", "ids", "bounds", "examples", "tags")
    }


def test_create_tool_is_a_decorator_and_a_function() -> None:
    @create_tool
    def bare() -> None: ...

    @create_tool(name="with-options")
    def decorated() -> None: ...

    called = create_tool(count_books, name="count-more", title="More")
    assert (bare.name, decorated.name) == ("bare", "with-options")
    assert (called.name, called.definition.title, called(ShelfId("shelf_1"))) == (
        "count-more",
        "More",
        {"books": 7},
    )


@pytest.mark.requirement("E1a")
def test_descriptions_come_from_where_authors_write_them() -> None:
    @tool(**good(examples=[{**EXAMPLE, "params": {"size": 2, "shelf_id": "shelf_1", "colour": "red"}}]))
    def paint_shelf(
        *,
        size: Annotated[int, Field(description="How large.", ge=1)],
        colour: Annotated[Literal["red", "blue"], Doc("Which colour.")],
        shelf_id: ShelfId,
        coats: Annotated[int, Field(ge=1)] = 2,
        note: Annotated[str, "What to note."] = "",
        days: int = Field(default=1, description="How long to wait.", le=3),
        other: ShelfId = ShelfId("shelf_2"),  # noqa: B008
    ) -> None:
        """Paint a shelf in a colour and return nothing. Use it when a shelf looks worn.

        Args:
            size: not this, as it is said above.
            coats: How many coats.
            days: not this either.
            other: The shelf beside it.
        """

    fields = paint_shelf.definition.input_schema["properties"]
    assert {name: each["description"] for name, each in fields.items()} == {
        "size": "How large.",
        "colour": "Which colour.",
        "shelf_id": "Which shelf.",
        "coats": "How many coats.",
        "note": "What to note.",
        "days": "How long to wait.",
        "other": "The shelf beside it.",
    }
    assert paint_shelf.definition.description == (
        "Paint a shelf in a colour and return nothing. Use it when a shelf looks worn."
    )
    assert paint_shelf.definition.input_schema["required"] == ["size", "colour", "shelf_id"]
