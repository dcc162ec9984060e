"""References stay inside the schema and never fetch anything."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.schemas.refused import DRAFT_7, DRAFT_2019, refused
from toolcrib.schemas import check, compile_schema
from toolcrib.schemas.validator import validator_of

# --- no fetching


@pytest.fixture
def canary() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def nobody_came(listener: socket.socket) -> bool:
    try:
        listener.accept()
    except BlockingIOError:
        return True
    return False


def spots(reference: str) -> Iterator[dict[str, Any]]:
    """A reference in every place where a library might follow it."""
    there = {"$ref": reference}
    yield from ({keyword: reference} for keyword in ("$ref", "$dynamicRef", "$recursiveRef", "$schema"))
    for keyword in (
        "items",
        "not",
        "if",
        "contains",
        "propertyNames",
        "unevaluatedProperties",
        "contentSchema",
    ):
        yield {keyword: there}
    yield from ({keyword: [there]} for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"))
    for keyword in ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"):
        yield {keyword: {"a": there}}
    for dialect in (DRAFT_7, DRAFT_2019):
        yield {"$schema": dialect, "dependencies": {"a": there}}
        yield {"$schema": dialect, "items": [there]}
        yield {"$schema": dialect, "items": [{}], "additionalItems": there}
    yield {"properties": {"a": {"$id": reference, "$schema": reference}}}


def test_no_url_is_fetched(canary: socket.socket) -> None:
    address = f"http://127.0.0.1:{canary.getsockname()[1]}/schema.json"
    for schema in spots(address):
        for root in ("object", None):
            refused(schema, root=root)
    assert nobody_came(canary)


def test_no_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "string"}')
    for reference in (file.as_uri(), str(file), f"file:{file}"):
        for schema in spots(reference):
            assert "string" not in refused(schema).reason


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema"])
def test_library_fetches_nothing_without_the_guard(
    keyword: str, canary: socket.socket, tmp_path: Path
) -> None:
    file = tmp_path / "schema.json"
    file.write_text("{}")
    for reference in (f"http://127.0.0.1:{canary.getsockname()[1]}/", file.as_uri()):
        with pytest.raises(
            ValueError, match=r"stay inside the schema|Unknown meta-schema|Retrieving external"
        ):
            validator_of({keyword: reference}, jsonschema_rs.RegexOptions())
    assert nobody_came(canary)


# --- references


@pytest.mark.parametrize(
    "reference",
    ["http://h/x", "https://h/#/$defs/a", "file:///etc/hosts", "//h/x", "other.json", "", "urn:x", 5, None],
)
def test_a_reference_must_stay_inside(reference: Any) -> None:
    error = refused({"properties": {"a": {"$ref": reference}}, "$defs": {"a": {}}})
    assert error.path == "#/properties/a/$ref"
    assert "start with '#'" in error.reason


@pytest.mark.parametrize(
    "reference", ["#/$defs/b", "#/$defs/a/type", "#nowhere", "#/required/0", f"#/required/{'9' * 5000}"]
)
def test_reference_must_point_to_a_schema(reference: str) -> None:
    error = refused({"$defs": {"a": {"type": "string"}}, "required": ["x"], "allOf": [{"$ref": reference}]})
    assert "no target" in error.reason
    assert len(error.reason) < 200


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/plain",
        "#/$defs/a~1b~0c",
        "#/$defs/with%20space",
        "#named",
        "#/properties/first",
        "#/allOf/0",
        "#/x-elsewhere/0/deep",
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_references_are_followed(reference: str, keyword: str) -> None:
    text = {"type": "string"}
    guarded = check({
        "properties": {"first": text, "a": {keyword: reference}},
        "allOf": [{"properties": {"a": text}, "type": ["object", "string"]}],
        "x-elsewhere": [{"deep": text}],
        "$defs": {"plain": text, "a/b~c": text, "with space": text, "n": {"$dynamicAnchor": "named", **text}},
    })  # fmt: skip
    assert compile_schema(guarded.schema).ok({"a": "text"})
    assert not compile_schema(guarded.schema).ok({"a": 1})


def test_reference_may_point_to_a_boolean() -> None:
    assert check({"properties": {"a": {"$ref": "#/$defs/any"}}, "$defs": {"any": True}})


def test_draft_7_anchors_by_id() -> None:
    schema = {
        "$schema": DRAFT_7,
        "properties": {"a": {"$ref": "#name"}},
        "definitions": {"n": {"$id": "#name", "type": "string"}},
    }
    assert not compile_schema(check(schema).schema).ok({"a": 1})


def test_duplicate_anchor_is_refused() -> None:
    two = {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}
    assert "unique name" in refused({"$defs": two}).reason
    assert "unique name" in refused({"$defs": {"a": {"$anchor": 5}}}).reason


def test_nested_id_that_changes_references_is_refused() -> None:
    inner: dict[str, Any] = {
        "$id": "http://h/x",
        "properties": {"b": {"$ref": "#/$defs/c"}},
        "$defs": {"c": {}},
    }
    assert refused({"properties": {"a": inner}, "$defs": {"c": {}}}).path == "#/properties/a/$id"
    hidden = {"$ref": "#/x-a/b", "x-a": {"$id": "http://h/x", "b": {"type": "object"}}}
    assert "nested $id" in refused(hidden).reason
    assert check({"properties": {"a": {"$id": "Address", "type": "string"}}})
