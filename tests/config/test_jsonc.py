"""JSON as editors write it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.config import ConfigError
from toolcrib.config.imports import MAX_IMPORT_BYTES, MAX_IMPORT_DEPTH, ParsedJson, read_json


def value(text: str) -> Any:
    return read_json(text.encode(), "mcp.json").value


def fault(data: bytes) -> str:
    with pytest.raises(ConfigError) as refused:
        read_json(data, "mcp.json")
    (found,) = refused.value.faults
    return str(found)


@pytest.mark.parametrize(
    "text, read",
    [
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2, /* three */ ]", [1, 2]),
        ('// first\n{"a": // why\n "b" /* b */}', {"a": "b"}),
        (
            '{"a": "// no comment", "b": "/* nor this */", "c": "x,}"}',
            {"a": "// no comment", "b": "/* nor this */", "c": "x,}"},
        ),
        (r'{"a": "say \"//\" \\", "b": [1,]}', {"a": 'say "//" \\', "b": [1]}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ('\ufeff{"a": 1}', {"a": 1}),
    ],
)
def test_comments_and_trailing_commas_are_read_past(text: str, read: object) -> None:
    assert value(text) == read


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 2, "\t"]))
def test_plain_json_is_read_as_it_is(document: Any, indent: str | int | None) -> None:
    assert value(json.dumps(document, indent=indent)) == document


@given(st.binary(max_size=200) | st.text('{}[]",:/*\\ \n1a', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assert isinstance(read_json(data, "mcp.json"), ParsedJson)
    except ConfigError as error:
        refused = error
    else:
        return
    assert str(refused).startswith("mcp.json")


@pytest.mark.parametrize(
    "data, said",
    [
        (b'{\n "a": 1\n "b": 2}', "mcp.json:3: is not valid JSON: Expecting ',' delimiter"),
        (b'// one\n/* two\n three */ {\n "a" 1}', "mcp.json:4: is not valid JSON: Expecting ':' delimiter"),
        (b'{"a": "x\n', "mcp.json:1: is not valid JSON: "),
        (b"{} /* never", ""),
        (b"", "mcp.json:1: is not valid JSON: Expecting value"),
        (b'\n{"a": "\xff"}', "mcp.json:2: is not UTF-8 text; save it as UTF-8"),
        (
            b'{"a": NaN}',
            "mcp.json: is not valid JSON: it contains NaN, Infinity or a number with too many digits",
        ),
        (
            b'{"a": ' + b"1" * 5000 + b"}",
            "mcp.json: is not valid JSON: it contains NaN, Infinity or a number with too many digits",
        ),
        (b'{"a": "\\ud800"}', "mcp.json: is not valid JSON: it contains an unpaired surrogate"),
        (b" " * (MAX_IMPORT_BYTES + 1), "mcp.json: is larger than 1024 KiB"),
        (b"\n" + b"[" * (MAX_IMPORT_DEPTH + 1), "mcp.json:2: is nested more than 64 levels deep"),
    ],
)
def test_syntax_error_names_the_line(data: bytes, said: str) -> None:
    if not said:
        assert value(data.decode()) == {}
        return
    assert fault(data).startswith(said)


def test_duplicate_keys_are_detected() -> None:
    assert read_json(b'{"a": {"b": 1, "b": 2}, "c": 3}', "x") == ParsedJson({"a": {"b": 2}, "c": 3}, ("b",))


@pytest.mark.parametrize(
    "make",
    [
        lambda: '"' + '\\"' * 500_000,
        lambda: '"\\' * 300_000,
        lambda: "/*" * 500_000,
        lambda: "/" * 1_000_000,
        lambda: ", " * 500_000,
        lambda: "," + " " * 1_000_000,
        lambda: "[]" * 500_000,
        lambda: '{"a":' * 200_000,
    ],
)
def test_hostile_files_are_refused_in_one_pass(make: Callable[[], str]) -> None:
    """Looked at again from every place, one of these would take hours."""
    assert fault(make().encode()).startswith("mcp.json:1: ")
