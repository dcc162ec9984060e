"""One bad tool costs one tool: mended where that is safe, withheld where not, and reported either way."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.interfaces import Offer
from toolcrib.model import Slow, Speech, Tool
from toolcrib.sources.mcp.connection import McpSettings, ToolSettings
from toolcrib.sources.mcp.validation import MAX_DEFINITION_BYTES, MAX_TEXT_BYTES, offer

SETTINGS = McpSettings(id="fs")


def raw(name: Any = "read", **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def taken(definition: Any, **options: Any) -> Tool:
    found = offer(SETTINGS, [definition], **options)
    assert not found.withheld
    return found.tools[0]


def repairs(definition: Any) -> tuple[str, ...]:
    return offer(SETTINGS, [definition]).repaired["fs:read"]


def withheld(found: Offer) -> list[tuple[str, str]]:
    return [(lost.name, lost.reason) for lost in found.withheld]


@pytest.mark.requirement("B2")
def test_valid_tool_is_taken_unchanged() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    definition = raw(
        title="Read",
        description="Reads a file.",
        inputSchema=schema,
        outputSchema={"type": "array"},
        annotations={"readOnlyHint": True, "idempotentHint": True},
    )
    found = offer(SETTINGS, [definition], version="2.1")
    assert found.tools == [
        Tool(
            name="fs:read",
            source="fs",
            family="mcp",
            title="Read",
            description="Reads a file.",
            input_schema=schema,
            output_schema={"type": "array"},
            version="2.1",
            timeout=10.0,
            annotations={"readOnlyHint": True, "idempotentHint": True},
        )
    ]
    assert found.definitions == {"fs:read": definition}
    assert not found.repaired


def test_safety_annotations_are_shown_not_trusted() -> None:
    tool = taken(raw(annotations={"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}))
    assert (tool.category, tool.idempotent, tool.read_only) == ("mutation", False, False)


def test_the_title_may_stand_in_the_annotations() -> None:
    assert taken(raw(annotations={"title": "Read"})).title == "Read"
    assert taken(raw(title="Own", annotations={"title": "Read"})).title == "Own"
    assert taken(raw()).title is None


def test_missing_version_defaults_to_first() -> None:
    assert taken(raw()).version == "1.0.0"


def test_null_is_the_same_as_nothing() -> None:
    nothing = raw(title=None, description=None, outputSchema=None, annotations=None)
    assert taken(nothing) == taken(raw())
    assert not offer(SETTINGS, [nothing]).repaired


@pytest.mark.parametrize(
    "definition, name, reason",
    [
        ("read", "fs:2", "not an object"),
        (None, "fs:2", "not an object"),
        ({"inputSchema": {}}, "fs:2", "no name"),
        (raw(""), "fs:2", "no name"),
        (raw(7), "fs:2", "no name"),
        (raw("a:b"), "fs:2", "must not contain a colon"),
        (raw("a\u202eb"), "fs:2", "U+202E"),
        (raw("a\U000e0041"), "fs:2", "U+E0041"),
        (raw("a\nb"), "fs:2", "U+000A"),
        (raw("x" * 300), "fs:2", "at most 256"),
        (raw(description=["x"]), "fs:read", "description is not text"),
        (raw(inputSchema=[]), "fs:read", "input schema is not an object"),
        (raw(inputSchema=True), "fs:read", "input schema is not an object"),
        (raw(description="x" * MAX_DEFINITION_BYTES), "fs:read", "at most 65,536"),
    ],
)
def test_a_tool_that_cannot_be_used_is_withheld_alone(definition: Any, name: str, reason: str) -> None:
    found = offer(SETTINGS, [raw("first"), definition, raw("last")])
    assert [tool.local for tool in found.tools] == ["first", "last"]
    assert list(found.definitions) == ["fs:first", "fs:last"]
    ((lost, why),) = withheld(found)
    assert lost == name
    assert reason in why


def test_the_second_of_two_tools_of_one_name_is_withheld() -> None:
    found = offer(SETTINGS, [raw(description="one"), raw(description="two")])
    assert [tool.description for tool in found.tools] == ["one"]
    assert withheld(found) == [("fs:read", "the server lists another tool of that name before it")]


def test_a_missing_schema_or_root_type_is_put_in() -> None:
    assert taken({"name": "read"}).input_schema == {"type": "object"}
    assert "no input schema" in repairs({"name": "read"})[0]
    loose = raw(inputSchema={"properties": {"a": {}}})
    assert taken(loose).input_schema == {"type": "object", "properties": {"a": {}}}
    assert "'object' was put in" in repairs(loose)[0]
    assert loose["inputSchema"] == {"properties": {"a": {}}}


def test_non_object_root_schema_is_passed_to_the_catalog() -> None:
    assert taken(raw(inputSchema={"type": "string"})).input_schema == {"type": "string"}


@pytest.mark.parametrize(
    "fields, repair",
    [
        ({"outputSchema": "x"}, "output schema was left out"),
        ({"outputSchema": True}, "output schema was left out"),
        ({"annotations": ["x"]}, "annotations was left out"),
        ({"title": 3}, "title was left out"),
        ({"annotations": {"title": 3}}, "title in its annotations was left out"),
    ],
)
def test_invalid_optional_field_is_omitted(fields: dict[str, Any], repair: str) -> None:
    tool = taken(raw(**fields))
    assert (tool.title, tool.output_schema, tool.annotations) == (None, None, {})
    assert repair in repairs(raw(**fields))[0]


def test_invisible_characters_are_removed() -> None:
    hidden = "a\u200bb\u202ec\U000e0041\x00d\ufe0fe\tf\ng"
    definition = raw(title=hidden, description=hidden, annotations={"title": hidden})
    tool = taken(definition)
    assert tool.title == tool.description == tool.annotations["title"] == "abcd\ufe0fe\tf\ng"
    assert len(repairs(definition)) == 3


@pytest.mark.parametrize("character", ["x", "é", "漢", "🛠"])
def test_a_long_description_is_cut_between_characters(character: str) -> None:
    definition = raw(description="-" + character * MAX_TEXT_BYTES)
    description = taken(definition).description
    assert MAX_TEXT_BYTES - 4 < len(description.encode()) <= MAX_TEXT_BYTES
    assert set(description) == {"-", character}
    assert "was cut from" in repairs(definition)[0]


def test_a_description_of_just_the_length_stays() -> None:
    assert not offer(SETTINGS, [raw(description="x" * MAX_TEXT_BYTES)]).repaired


@pytest.mark.requirement("B7")
def test_a_list_in_the_config_is_an_allowlist_with_overrides() -> None:
    own = ToolSettings(
        expose_as="peek",
        description="Ours.",
        speech_field="text",
        speech_template="It says {text}",
        timeout=3.0,
        slow=Slow(threshold=1.0, message="Wait"),
    )
    usual = Slow(threshold=2.0, message="One moment")
    settings = McpSettings(id="fs", slow=usual, tools={"read": own, "plain": ToolSettings()})
    found = offer(settings, [raw(description=None), raw("plain", description="Theirs."), raw("write"), 7])
    first, second = found.tools
    assert (first.expose_as, first.description, first.timeout) == ("peek", "Ours.", 3.0)
    assert first.speech == Speech(field="text", template="It says {text}")
    assert first.slow == Slow(threshold=1.0, message="Wait")
    assert (second.name, second.description, second.slow) == ("fs:plain", "Theirs.", usual)
    assert withheld(found) == [("fs:4", "it is not an object")]


def test_invalid_header_withholds_only_modern_tools() -> None:
    bad = raw(inputSchema={"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}})
    assert "x-mcp-header of a requires the type" in withheld(offer(SETTINGS, [bad], modern=True))[0][1]
    assert not offer(SETTINGS, [bad]).withheld


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(["name", "title", "description", "inputSchema", "outputSchema", "annotations", "x"])


@given(st.lists(anything | st.dictionaries(fields, anything), max_size=6), st.booleans())
def test_every_listed_tool_is_accepted_or_withheld(listed: list[Any], modern: bool) -> None:
    found = offer(SETTINGS, listed, modern=modern)
    assert len(found.tools) + len(found.withheld) == len(listed)
    assert set(found.definitions) == {tool.name for tool in found.tools}
    assert set(found.repaired) <= set(found.definitions)
