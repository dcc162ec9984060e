"""JSON arguments reach a function as its annotated types."""

from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from toolcrib.errors import Refused
from toolcrib.schemas import compile_schema
from toolcrib.sdk import ToolContext, create_tool
from toolcrib.sdk.signature import deep_copy, read_signature

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Colour(Enum):
    RED = "red"


class Order(BaseModel):
    sku: str
    count: int = Field(ge=1)


def take_all(
    *,
    when: datetime,
    colour: Colour,
    price: Decimal,
    key: UUID,
    orders: list[Order],
    ratio: float,
    count: int,
) -> None: ...


def test_values_arrive_in_the_types_of_the_signature() -> None:
    arguments = {
        "when": "2026-03-03T10:00:00Z",
        "colour": "red",
        "price": "9.99",
        "key": "12345678-1234-5678-1234-567812345678",
        "orders": [{"sku": "a", "count": 2}],
        "ratio": 1,
        "count": 2.0,
        "unasked": "left out",
    }
    taken = read_signature(take_all).convert(arguments)
    assert taken == {
        "when": datetime(2026, 3, 3, 10, tzinfo=UTC),
        "colour": Colour.RED,
        "price": Decimal("9.99"),
        "key": UUID("12345678-1234-5678-1234-567812345678"),
        "orders": [Order(sku="a", count=2)],
        "ratio": 1.0,
        "count": 2,
    }
    assert (type(taken["ratio"]), type(taken["count"])) == (float, int)


def odd_names(schema: str, json: int, model_config: bool, _hidden: str = "x", copy: str = "y") -> None: ...


def test_any_python_name_may_be_a_parameter() -> None:
    signature = read_signature(odd_names)
    assert list(signature.schema["properties"]) == ["schema", "json", "model_config", "_hidden", "copy"]
    assert signature.schema["required"] == ["schema", "json", "model_config"]
    taken = signature.convert({"schema": "s", "json": 1, "model_config": True})
    assert taken == {"schema": "s", "json": 1, "model_config": True, "_hidden": "x", "copy": "y"}


SENTINEL: Any = object()


def with_defaults(names: list[str] = ["a"], other: int = SENTINEL) -> None: ...  # noqa: B006 -- that is the point


def test_defaults_are_not_shared_and_need_not_be_json() -> None:
    signature = read_signature(with_defaults)
    assert signature.schema["properties"] == {
        "names": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
        "other": {"type": "integer"},
    }
    first = signature.convert({})
    first["names"].append("b")
    assert signature.convert({}) == {"names": ["a"], "other": SENTINEL}


def field_as_default(
    count: int = Field(default=3, ge=1, description="How many."), name: str = Field(max_length=5)
) -> None: ...


def test_a_field_may_stand_where_the_default_does() -> None:
    signature = read_signature(field_as_default)
    assert signature.schema["required"] == ["name"]
    assert signature.schema["properties"] == {
        "count": {"type": "integer", "default": 3, "minimum": 1, "description": "How many."},
        "name": {"type": "string", "maxLength": 5},
    }
    assert signature.convert({"name": "Ada"}) == {"count": 3, "name": "Ada"}


def spelled(when: "datetime", ctx: "ToolContext | None" = None) -> "dict[str, int]": ...


def test_annotations_may_be_strings() -> None:
    signature = read_signature(spelled)
    assert (list(signature.schema["properties"]), signature.context) == (["when"], "ctx")
    assert signature.output == {"type": "object", "additionalProperties": {"type": "integer"}}


def described(
    one: Annotated[str, "The first."], two: Annotated[int, "Not this.", Field(description="This.")]
) -> None: ...


def test_a_plain_string_describes_a_parameter() -> None:
    properties = read_signature(described).schema["properties"]
    assert [each["description"] for each in properties.values()] == ["The first.", "This."]


def test_a_parameter_without_a_type_takes_anything() -> None:
    def untyped(thing: Any) -> None: ...

    untyped.__annotations__.clear()
    signature = read_signature(untyped)
    assert signature.schema["properties"] == {"thing": {}}
    assert signature.convert({"thing": [1, {}]}) == {"thing": [1, {}]}


@dataclass
class Place:
    city: str


class Area(TypedDict):
    city: str


def take_model(params: Order, context: ToolContext) -> None: ...
def take_dataclass(params: Annotated[Place, Field(description="Where.")]) -> None: ...
def take_typed_dict(params: Area) -> None: ...
def take_number(params: int) -> None: ...
def take_two(params: Order, other: int) -> None: ...


@pytest.mark.requirement("E5")
def test_params_alone_takes_all_arguments_as_one_value() -> None:
    signature = read_signature(take_model)
    assert signature.context == "context"
    assert list(signature.schema["properties"]) == ["sku", "count"]
    assert signature.convert({"sku": "a", "count": 1}) == {"params": Order(sku="a", count=1)}
    assert read_signature(take_dataclass).convert({"city": "Bonn"}) == {"params": Place("Bonn")}
    assert read_signature(take_typed_dict).convert({"city": "Bonn"}) == {"params": {"city": "Bonn"}}
    with pytest.raises(Refused) as caught:
        signature.convert({"sku": "a", "count": 0})
    assert caught.value.problem.path == "arguments.count"


def test_params_is_a_name_like_any_other_otherwise() -> None:
    assert list(read_signature(take_number).schema["properties"]) == ["params"]
    assert list(read_signature(take_two).schema["properties"]) == ["params", "other"]


class Node(BaseModel):
    label: str = ""
    children: list["Node"] = []


class Extensible(BaseModel):
    model_config = ConfigDict(extra="allow")
    label: str = ""


def take_nothing() -> None: ...
def take_node(params: Node) -> None: ...
def take_extensible(params: Extensible) -> None: ...
def take_extras(label: str = "", **extras: Any) -> None: ...
def take_typed_extras(ctx: ToolContext, label: str = "", **extras: int) -> None: ...


@pytest.mark.requirement("E20")
@pytest.mark.parametrize("function", [take_all, take_nothing, take_model, take_typed_dict, take_node])
def test_arguments_that_are_not_declared_are_refused(function: Any) -> None:
    assert read_signature(function).schema["additionalProperties"] is False


@pytest.mark.requirement("E20")
def test_root_of_a_recursive_model_is_closed() -> None:
    validator = compile_schema(read_signature(take_node).schema)
    assert validator.ok({"label": "a", "children": [{"label": "b", "note": "ignored as by pydantic"}]})
    (fault,) = validator.faults({"labell": "a"})
    assert (fault.path, fault.near) == ("arguments.labell", "label")


@pytest.mark.requirement("E20")
def test_extras_are_accepted_and_passed_on() -> None:
    signature = read_signature(take_extras)
    assert signature.schema["additionalProperties"] is True
    assert signature.convert({"label": "a", "more": [1]}) == {"label": "a", "more": [1]}
    extensible = read_signature(take_extensible)
    assert extensible.schema["additionalProperties"] is True
    assert extensible.convert({"more": 1}) == {"params": Extensible.model_validate({"more": 1})}


@pytest.mark.requirement("E20")
def test_extras_have_the_annotated_type() -> None:
    signature = read_signature(take_typed_extras)
    assert signature.schema["additionalProperties"] == {"type": "integer"}
    assert signature.convert({"more": 1}) == {"label": "", "more": 1}
    with pytest.raises(Refused) as caught:
        signature.convert({"ctx": 1})
    assert caught.value.problem.path == "arguments.ctx"


def context_first(ctx: ToolContext, name: str) -> None: ...
def context_last(name: str, whoever: ToolContext | None = None) -> None: ...
def context_annotated(name: str, *, who: Annotated[ToolContext, "Asks."]) -> None: ...


@pytest.mark.requirement("E5")
@pytest.mark.parametrize(
    "function,name", [(context_first, "ctx"), (context_last, "whoever"), (context_annotated, "who")]
)
def test_the_context_is_found_by_its_type(function: Any, name: str) -> None:
    signature = read_signature(function)
    assert signature.context == name
    assert list(signature.schema["properties"]) == ["name"]


@pytest.mark.parametrize(
    "arguments,path",
    [
        ({"orders": [{"sku": "a", "count": "many"}]}, "arguments.orders.0.count"),
        ({"orders": [{"sku": "a", "count": 0}]}, "arguments.orders.0.count"),
        ({}, "arguments.orders"),
    ],
)
@pytest.mark.requirement("E11")
def test_invalid_argument_is_reported_by_path_not_value(arguments: Any, path: str) -> None:
    def order(orders: list[Order]) -> None: ...

    with pytest.raises(Refused) as caught:
        read_signature(order).convert(arguments)
    problem = caught.value.problem
    assert (problem.code, problem.path) == ("INVALID_ARGUMENTS", path)
    assert problem.message.startswith(f"{path}: ")
    assert "many" not in problem.message
    assert caught.value.__cause__ is None


@create_tool
def change(value: Any, data: dict[str, Any], items: list[Any]) -> None:
    """Change whatever there is to change."""
    for each in (value, data, items):
        _spoil(each)


def _spoil(value: Any) -> None:
    for each in _inside(value):
        _spoil(each)
    if type(value) is dict:
        cast("dict[str, Any]", value)["spoiled"] = True
    elif type(value) is list:
        cast("list[Any]", value).append("spoiled")


def _inside(value: Any) -> list[Any]:
    if type(value) is dict:
        return list(cast("dict[str, Any]", value).values())
    return list(cast("list[Any]", value)) if type(value) is list else []


@pytest.mark.requirement("E5")
@given(value=JSON, data=st.dictionaries(st.text(), JSON, max_size=3), items=st.lists(JSON, max_size=3))
def test_the_callers_arguments_are_never_changed(value: Any, data: Any, items: Any) -> None:
    arguments = {"value": value, "data": data, "items": items}
    before = deepcopy(arguments)
    change(**change.signature.convert(arguments))
    assert arguments == before


@given(JSON)
def test_a_copy_is_equal_and_shares_no_container(value: Any) -> None:
    copied = deep_copy(value)
    assert copied == value
    assert not (_containers(copied) & _containers(value))


def _containers(value: Any) -> set[int]:
    mine = {id(value)} if type(value) in (dict, list) else set[int]()
    return mine.union(*(_containers(each) for each in _inside(value)))
