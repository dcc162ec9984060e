"""The registry holds each name once, and takes ready definitions too."""

from dataclasses import replace
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from tests.sdk.test_signature import JSON
from tests.texts import matches
from toolcrib.sdk import AnyTool, Registry, ToolContext, ToolDefinitionError, create_tool
from toolcrib.sources.functions import Functions, ModuleProblem

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FLAT = {"type": "function", "name": "get_weather", "description": "Weather.", "parameters": PARAMETERS}
NESTED = {"type": "function", "function": {key: FLAT[key] for key in ("name", "description", "parameters")}}


def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


@create_tool(category="query", tags=["cards"])
def get_card() -> None: ...


@create_tool(category="mutation", tags=["cards", "decks"])
def move_card() -> None: ...


@pytest.fixture
def registry() -> Registry:
    made = Registry()
    made.register(get_card)
    made.register(move_card)
    return made


@pytest.mark.requirement("E3", "B1")
def test_tools_are_found_by_name_category_and_tag(registry: Registry) -> None:
    assert registry.get("get-card") is get_card
    assert registry.get("get-deck") is None
    assert registry.get_all() == (get_card, move_card)
    assert registry.get_by_category("mutation") == (move_card,)
    assert registry.get_by_category("analysis") == ()
    assert registry.get_by_tag("cards") == (get_card, move_card)
    assert registry.get_by_tag("decks") == (move_card,)


@pytest.mark.requirement("E3")
def test_duplicate_name_is_refused_without_replace(registry: Registry) -> None:
    other: AnyTool = create_tool(name="get-card")(lambda: 1)
    with pytest.raises(ToolDefinitionError) as raised:
        registry.register(other)
    assert matches("library", "duplicate name is refused without replace", str(raised.value))
    assert registry.get("get-card") is get_card
    assert registry.register(other, replace=True) is other
    assert registry.get_all() == (other, move_card)


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("definition", [FLAT, NESTED])
def test_a_ready_definition_becomes_a_tool(registry: Registry, definition: Any) -> None:
    made = registry.register_tool(
        definition, echo, category="query", permissions=["weather:read"], tags=["sky"]
    )
    assert registry.get("get_weather") is made
    assert (made.definition.description, made.definition.input_schema) == ("Weather.", PARAMETERS)
    assert (made.definition.category, made.definition.tags) == ("query", ("sky",))
    with pytest.raises(ToolDefinitionError, match="already"):
        registry.register_tool(definition, echo)


@pytest.mark.requirement("B1")
@given(arguments=st.dictionaries(st.text(), JSON, max_size=4))
def test_an_executor_gets_the_arguments_intact_and_as_its_own(arguments: Any) -> None:
    made = Registry().register_tool(FLAT, echo)
    taken = made(**made.signature.convert(arguments))
    assert taken == arguments
    assert taken is not arguments


def with_context(arguments: Any, ctx: ToolContext) -> None: ...
def context_first(ctx: ToolContext, arguments: Any) -> None: ...
def by_place(arguments: Any, context: Any) -> None: ...
def with_option(arguments: Any, retries: int = 3) -> None: ...


@pytest.mark.parametrize(
    "executor,context",
    [(echo, None), (with_option, None), (with_context, "ctx"), (context_first, "ctx"), (by_place, "context")],
)
def test_an_executor_that_takes_two_gets_the_context(executor: Any, context: str | None) -> None:
    made = Registry().register_tool(FLAT, executor)
    assert made.signature.context == context
    assert made.signature.convert({"city": "Bonn"}) == {"arguments": {"city": "Bonn"}}


def too_many(arguments: Any, context: Any, third: Any) -> None: ...
def none() -> None: ...
def starred(*arguments: Any) -> None: ...
def by_place_only(arguments: Any, /) -> None: ...


@pytest.mark.parametrize("executor", [too_many, none, starred, by_place_only])
def test_an_executor_that_cannot_be_called_is_refused(executor: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="the executor"):
        Registry().register_tool(FLAT, executor)


@pytest.mark.requirement("A1", "E2")
@pytest.mark.parametrize(
    "definition,said",
    [
        ({"description": "x"}, "has no name"),
        ({"function": "get_weather"}, "has no name"),
        ({"name": "sky:weather"}, "contains a colon"),
        ({"name": "x", "parameters": {"type": "nonsense"}}, "not a usable JSON Schema"),
    ],
)
def test_a_bad_definition_is_refused(definition: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        Registry().register_tool(definition, echo)


@pytest.mark.requirement("E2")
def test_bad_options_for_a_ready_definition_are_refused_together() -> None:
    options: Any = {"tags": "sky", "rate_limit": 5}
    with pytest.raises(ToolDefinitionError) as caught:
        Registry().register_tool(FLAT, echo, **options)
    assert matches("library", "bad options for a ready definition are refused together", str(caught.value))
    assert [each.rule for each in caught.value.findings] == ["tags", "rate_limit"]


def test_a_definition_without_parameters_takes_none() -> None:
    made = Registry().register_tool({"name": "ping"}, echo)
    assert made.definition.input_schema == {"type": "object", "properties": {}}


@pytest.mark.requirement("E3")
def test_validate_reports_shortcomings(registry: Registry) -> None:
    @create_tool(examples=[{"description": "One", "params": {"count": 1}}])
    def act(count: int) -> None:
        """Too short."""

    said = {finding.rule: finding.message for finding in registry.validate(act)}
    assert set(said) == {"name", "description", "uses", "parameters", "bounds", "examples", "tags"}
    everything = " ".join(finding.message for finding in registry.validate(act))
    for part in (
        "has 10 characters",
        "count has no description",
        "has no expectedResult",
        "no tag",
        "not kebab-case verb-noun",
    ):
        assert part in everything
    assert matches(
        "library",
        "validate reports shortcomings",
        " ".join(each.message for each in registry.validate(get_card)),
    )


def old(replacement: str, **more: Any) -> AnyTool:
    gone = {"since": "2.0.0", "replacement": replacement, "removalDate": "2999-01-31"}
    return create_tool(name="take-card", deprecated=gone, **more)(lambda: 1)


@pytest.mark.requirement("E2", "E3")
def test_replacement_must_exist(registry: Registry) -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        registry.register(old("take-card-v2"))
    assert matches("library", "replacement must exist", str(raised.value))
    assert registry.get("take-card") is None
    assert registry.validate(old("take-card-v2"))[0].rule == "deprecated"
    assert registry.register(old("get-card")).name == "take-card"
    assert registry.register(old("elsewhere:take-card"), replace=True).name == "take-card"
    registry.register(create_tool(name="fetch-card", aliases=["grab-card"])(lambda: 1))
    assert registry.register(old("grab-card"), replace=True).name == "take-card"


@pytest.mark.requirement("E2")
def test_tools_that_are_offered_together_are_looked_at_together(registry: Registry) -> None:
    with pytest.raises(ModuleProblem) as raised:
        Functions("cards", [old("get-card")])
    assert matches("library", "tools that are offered together are looked at together", str(raised.value))
    assert Functions("cards", [old("get-card"), *registry.get_all()]).id == "cards"


@pytest.mark.requirement("E2")
def test_contradictory_definition_from_elsewhere_is_refused(registry: Registry) -> None:
    odd = replace(get_card, definition=replace(get_card.definition, name=":see-card", category="mutation"))
    odd = replace(odd, definition=replace(odd.definition, cache_ttl=5.0))
    with pytest.raises(ToolDefinitionError) as raised:
        registry.register(odd)
    assert matches("library", "contradictory definition from elsewhere is refused", str(raised.value))


def test_validate_passes_a_good_tool(registry: Registry) -> None:
    @create_tool(tags=["x"], examples=[{"description": "One", "params": {"count": 1}, "expectedResult": {}}])
    def count_things(count: Annotated[int, Field(description="How many.", ge=0)]) -> None:
        """Count things up to a number. Use it to see a good definition; returns nothing."""

    assert registry.validate(count_things) == []
