"""Mirrored headers: found where the protocol allows them, encoded as it requires."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value, find_invalid_x_mcp_header, validate_mcp_param_headers

from toolcrib.mcp.headers import InvalidMirroredHeader, header_value, mirrored_headers, mirrors_of


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


REGION = {"type": "string", "x-mcp-header": "Region"}
DEEP = schema(
    region=REGION, where=schema(zone={"type": "integer", "x-mcp-header": "Zone"}), on={"type": "boolean"}
)


def test_mirrored_parameters_are_found_at_any_depth() -> None:
    assert set(mirrors_of(DEEP)) == {(("region",), "Mcp-Param-Region"), (("where", "zone"), "Mcp-Param-Zone")}
    assert mirrors_of(schema(region={"type": "string"})) == ()


@pytest.mark.parametrize(
    "wrong, why",
    [
        ({"x-mcp-header": "Root", "type": "object"}, "location is always the same"),
        (schema(a={"anyOf": [REGION]}), "location is always the same"),
        (schema(a={"type": "array", "items": REGION}), "location is always the same"),
        ({"$defs": {"a": REGION}}, "location is always the same"),
        ({"$defs": {"a": schema(b=REGION)}}, "location is always the same"),
        (schema(a={"type": "string", "x-mcp-header": ""}), "not a valid header name"),
        (schema(a={"type": "string", "x-mcp-header": "a b"}), "not a valid header name"),
        (schema(a={"type": "string", "x-mcp-header": 3}), "not a valid header name"),
        (schema(a={"type": "number", "x-mcp-header": "A"}), "requires the type"),
        (schema(a={"type": ["string"], "x-mcp-header": "A"}), "requires the type"),
        (schema(a={"x-mcp-header": "A"}), "requires the type"),
        (schema(a=REGION, b={"type": "string", "x-mcp-header": "REGION"}), "same header"),
    ],
)
def test_invalid_header_annotations_are_refused(wrong: dict[str, Any], why: str) -> None:
    assert find_invalid_x_mcp_header(wrong) is not None
    with pytest.raises(InvalidMirroredHeader, match=why):
        mirrors_of(wrong)


@pytest.mark.parametrize(
    "fine",
    [
        schema(a={"default": {"x-mcp-header": "A"}}),
        schema(a={"enum": [{"x-mcp-header": "A"}]}),
        {"type": "object", "properties": {"x-mcp-header": {"type": "string"}}},
        {"type": "object", "properties": ["x-mcp-header"]},
    ],
)
def test_header_annotation_lookalikes_are_ignored(fine: dict[str, Any]) -> None:
    assert find_invalid_x_mcp_header(fine) is None
    assert mirrors_of(fine) == ()


@pytest.mark.parametrize(
    "arguments, headers",
    [
        ({"region": "eu"}, {"Mcp-Param-Region": "eu"}),
        ({"where": {"zone": 3}}, {"Mcp-Param-Zone": "3"}),
        ({"region": None, "where": "nowhere"}, {}),
        ({"region": ["eu"]}, {}),
        ({"region": "Köln"}, {"Mcp-Param-Region": "=?base64?S8O2bG4=?="}),
    ],
)
def test_only_given_arguments_are_mirrored(arguments: dict[str, Any], headers: dict[str, str]) -> None:
    assert mirrored_headers(mirrors_of(DEEP), arguments) == headers


def test_booleans_are_mirrored_as_json() -> None:
    mirrors = mirrors_of(schema(on={"type": "boolean", "x-mcp-header": "On"}))
    assert mirrored_headers(mirrors, {"on": True}) == {"Mcp-Param-On": "true"}
    assert mirrored_headers(mirrors, {"on": False}) == {"Mcp-Param-On": "false"}


@given(st.text())
def test_any_text_round_trips_through_a_header(text: str) -> None:
    value = header_value(text)
    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()
    assert decode_header_value(value) == text


@pytest.mark.parametrize("text", [" edge", "edge ", "a\r\nb", "=?base64?eA==?=", "漢"])
def test_text_a_header_would_change_is_encoded(text: str) -> None:
    assert header_value(text).startswith("=?base64?")
    assert decode_header_value(header_value(text)) == text


@given(
    st.fixed_dictionaries(
        {}, optional={"region": st.text(), "where": st.fixed_dictionaries({"zone": st.integers()})}
    )
)
def test_reference_server_accepts_the_headers(arguments: dict[str, Any]) -> None:
    headers = mirrored_headers(mirrors_of(DEEP), arguments)
    assert validate_mcp_param_headers(DEEP, arguments, headers) is None
