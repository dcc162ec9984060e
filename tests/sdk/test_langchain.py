"""A LangChain tool keeps its name, schema and bound call; what it cannot be given here is refused at once."""

from threading import Barrier
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from tests.sdk.chains import Blocking, Chain, InjectedToolCallId, OldModel
from tests.sdk.test_signature import JSON
from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.formats import FORMATS
from toolcrib.model import Tool
from toolcrib.sdk import Registry, ToolDefinitionError
from toolcrib.sdk.langchain import LANGCHAIN_TIMEOUT_SECONDS, langchain_tool

pytestmark = pytest.mark.requirement("B4")

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def defined(tool: Any, **options: Any) -> Tool:
    return Registry().register_langchain_tool(tool, **options).definition


# --- what it is called ---


@pytest.mark.parametrize(
    "lc_name,name",
    [
        (None, "look_up"),
        ("", "look_up"),
        (7, "look_up"),
        (lambda: "bound", "look_up"),
        ("find-city", "find-city"),
    ],
)
def test_the_name_is_its_lc_name_where_that_is_one(lc_name: object, name: str) -> None:
    assert defined(Chain(lc_name=lc_name)).local == name


def test_options_override_tool_attributes() -> None:
    chain = Chain(tags=["web"], args_schema=SCHEMA)
    plain = defined(chain)
    assert (plain.local, plain.description, plain.tags) == ("look_up", "Look something up.", ("web",))
    assert (plain.category, plain.family, plain.timeout) == (
        "mutation",
        "langchain",
        LANGCHAIN_TIMEOUT_SECONDS,
    )
    told = defined(
        chain,
        name="find-city",
        description="Find a city.",
        tags=["maps"],
        category="query",
        permissions=["maps:read"],
        response_time="slow",
        version="2.0.0",
    )
    assert (told.local, told.description, told.tags) == ("find-city", "Find a city.", ("maps",))
    assert (told.category, told.idempotent, told.version) == ("query", True, "2.0.0")
    assert told.permissions == {"maps:read"}
    assert told.timeout is None
    assert defined(chain, timeout=3).timeout == 3


@pytest.mark.parametrize(
    "tool,said",
    [
        (Chain(name="maps:find"), "contains a colon"),
        (Chain(name=""), "use 1 to 64"),
        (object(), "object is not a LangChain tool"),
        (Chain(args_schema=object()), "tool look_up: its args_schema is neither"),
        (Chain(args_schema={"type": "nonsense"}), "not a usable JSON Schema"),
    ],
)
def test_non_tool_is_refused(tool: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        Registry().register_langchain_tool(tool)


def test_non_json_arguments_are_refused() -> None:
    with pytest.raises(ToolDefinitionError, match=r"tool look_up: .* in its arguments"):
        defined(Chain(args_schema=Shapeless))


def test_a_contradiction_in_the_options_is_refused() -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        defined(Chain(), cache_ttl=60)
    assert matches("library", "a contradiction in the options is refused", str(raised.value))


def test_a_whole_list_is_registered_with_a_prefix_or_without() -> None:
    registry = Registry()
    first, second = registry.register_langchain_tools([Chain(name="a"), Chain(name="b")], tags=["web"])
    assert registry.get_all() == (first, second)
    assert [each.name for each in registry.get_by_tag("web")] == ["a", "b"]
    with pytest.raises(ToolDefinitionError) as raised:
        registry.register_langchain_tools([Chain(name="a")])
    assert matches("library", "a whole list is registered with a prefix or without", str(raised.value))
    registry.register_langchain_tools([Chain(name="a"), Chain(lc_name="c")], prefix="notes")
    assert [each.name for each in registry.get_all()[2:]] == ["notes_a", "notes_c"]
    (again,) = registry.register_langchain_tools([Chain(name="a")], replace=True)
    assert registry.get("a") is again
    with pytest.raises(ToolDefinitionError) as raised:
        registry.register_langchain_tools([Chain()], name="x")
    assert matches("library", "a whole list is registered with a prefix or without 2", str(raised.value))


def test_the_family_stays_when_a_source_binds_it() -> None:
    made = langchain_tool(Chain())
    assert (made.bind("tools").family, made.bind("crib", "core").family) == ("langchain", "langchain")


def test_mcp_annotations_are_shown_and_metadata_kept() -> None:
    claims = {"title": "Look up", "readOnlyHint": True, "openWorldHint": None}
    chain = Chain(metadata={**claims, "_meta": {"shop/page": 1}, "owner": {"of": ("it",)}, "odd": object})
    made = defined(chain)
    assert made.title == "Look up"
    assert made.annotations == {"title": "Look up", "readOnlyHint": True}
    assert made.meta["shop/page"] == 1
    assert made.meta["langchain/metadata"]["owner"] == {"of": ["it"]}
    assert made.category == "mutation"
    spelled = FORMATS["mcp"].tool(made, "look_up")
    assert spelled["annotations"] == {"title": "Look up", "readOnlyHint": True}
    assert "annotations" not in FORMATS["mcp"].tool(defined(Chain(metadata={"_meta": None})), "look_up")


# --- what it takes ---


class Place(BaseModel):
    """Where."""

    city: str = Field(min_length=1)

    @field_validator("city")
    @classmethod
    def known(cls, city: str) -> str:
        if city == "Atlantis":
            message = "there is no such city"
            raise ValueError(message)
        return city


class Trip(BaseModel):
    """From here to there, for somebody LangChain knows."""

    to: Place
    call: Annotated[str, InjectedToolCallId]
    owner: str = "nobody"


class Shown(BaseModel):
    """What a model sees of it."""

    to: Place


class Shapeless(BaseModel, arbitrary_types_allowed=True):
    """A type without a JSON form."""

    gate: Barrier


class Stateful(BaseModel):
    """What only a graph can fill in."""

    text: str
    state: dict[str, Any]


def test_model_schema_omits_repeated_title_and_description() -> None:
    assert defined(Chain(args_schema=Place)).input_schema == {
        "type": "object",
        "properties": {"city": {"minLength": 1, "title": "City", "type": "string"}},
        "required": ["city"],
    }
    assert defined(Chain(args_schema=OldModel)).input_schema == {
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        "required": ["count"],
    }


def test_a_json_schema_is_kept_whole() -> None:
    deep = {**SCHEMA, "$defs": {"x": {"type": "array"}}, "additionalProperties": False}
    assert defined(Chain(args_schema={**deep, "description": "x"})).input_schema == deep
    assert defined(Chain(args_schema={})).input_schema == {"type": "object", "properties": {}}


def test_a_tool_over_one_text_takes_that_text_and_no_more() -> None:
    misleading: Any = {"properties": {"args": {}, "config": {}}, "required": ["config"]}
    chain = Chain(args={"tool_input": {"type": "string"}}, tool_call_schema=misleading)
    assert defined(chain).input_schema == {
        "type": "object",
        "properties": {"tool_input": {"type": "string"}},
        "required": ["tool_input"],
        "additionalProperties": False,
    }


def test_without_schema_the_signature_is_used() -> None:
    assert defined(Chain()).input_schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    starred = {"kwargs": {"type": "object"}}
    open_ended = Chain(args=starred, tool_call_schema={"properties": starred})
    assert defined(open_ended).input_schema == {"type": "object", "properties": starred}


def test_required_agent_state_is_refused() -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        defined(Chain(args_schema=Stateful, tool_call_schema={"properties": {"text": {"type": "string"}}}))
    assert matches("library", "required agent state is refused", str(raised.value))


def test_injected_arguments_are_not_in_the_schema() -> None:
    made = langchain_tool(Chain(args_schema=Trip, tool_call_schema=Shown))
    assert list(made.definition.input_schema["properties"]) == ["to"]
    to = {"city": "Bonn"}
    taken = made.signature.convert({"to": to, "owner": "me", "call": "forged", "more": 1})
    assert taken == {"arguments": {"to": to, "more": 1}}
    assert taken["arguments"]["to"] is not to


def test_function_level_injected_arguments_are_hidden() -> None:
    class Adapted(Chain):
        _injected_args_keys = frozenset({"runtime", "city"})

    made = langchain_tool(Adapted(args_schema=SCHEMA))
    assert made.signature.convert({"city": "Bonn", "runtime": {}}) == {"arguments": {"city": "Bonn"}}


@pytest.mark.parametrize(
    "model,arguments,path,said",
    [
        (Place, {"city": "Atlantis"}, "arguments.city", "there is no such city"),
        (Trip, {"to": {"city": ""}}, "arguments.to.city", "at least 1 character"),
        (OldModel, {"count": 3}, "arguments.count", "odd"),
    ],
)
def test_tool_schema_violation_is_invalid_argument(
    model: Any, arguments: dict[str, Any], path: str, said: str
) -> None:
    made = langchain_tool(Chain(args_schema=model, tool_call_schema=Shown if model is Trip else model))
    with pytest.raises(Refused, match=said) as caught:
        made.signature.convert(arguments)
    problem = caught.value.problem
    assert (problem.code, problem.path) == ("INVALID_ARGUMENTS", path)
    assert caught.value.__cause__ is None


def test_an_error_of_the_check_itself_is_not_the_callers() -> None:
    made = langchain_tool(Chain(args_schema=OldModel))
    with pytest.raises(ValueError, match="no fault of the arguments'"):
        made.signature.convert({"count": 10})


@given(arguments=st.dictionaries(st.text(), JSON, max_size=4))
def test_arguments_arrive_intact_and_as_its_own(arguments: dict[str, Any]) -> None:
    chain = Blocking(args_schema={"type": "object"})
    made = langchain_tool(chain)
    made(**made.signature.convert(arguments), context=None)
    assert chain.asked == [arguments]
    assert chain.asked[0] is not arguments
