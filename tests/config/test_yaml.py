"""Reading YAML: plain values, exact places, and nothing that could grow."""

import json
from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.config import yaml as ours
from toolcrib.config.yaml import MAX_CONFIG_BYTES, MAX_CONFIG_DEPTH, MAX_CONFIG_VALUES, Reading, read


def reading(text: str) -> Reading:
    return read(text.encode(), "x.yaml")


def faults(text: str) -> list[str]:
    return [str(fault) for fault in reading(text).faults]


@pytest.fixture(params=["libyaml", "python"])
def either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(ours, "_LOADER", yaml.SafeLoader)


@pytest.mark.parametrize(
    "written, value",
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("FALSE", False),
        ("on", "on"),
        ("no", "no"),
        ("0", 0),
        ("-12", -12),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("9" * 100, "9" * 100),
        ("'true'", "true"),
        ('"12"', "12"),
        ("600/min", "600/min"),
        ("=", "="),
    ],
)
@pytest.mark.usefixtures("either_parser")
def test_plain_scalars_follow_yaml_1_2(written: str, value: object) -> None:
    found = reading(f"key: {written}\n").values["key"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.usefixtures("either_parser")
def test_every_value_has_a_place() -> None:
    read = reading("server:\n  host: a\ncontexts:\n  support: {tools: [x,\n    y]}\n")
    assert read.values == {"server": {"host": "a"}, "contexts": {"support": {"tools": ["x", "y"]}}}
    assert read.positions["server", "host"] == (2, 3)
    assert read.positions["contexts", "support", "tools"] == (4, 13)
    assert read.positions["contexts", "support", "tools", 1] == (5, 5)
    assert read.faults == ()
    assert read.complete


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "null", "\ufeff", "---\n...\n"])
def test_nothing_is_an_empty_document(text: str) -> None:
    assert reading(text) == Reading(positions=reading(text).positions)


def test_keys_are_always_text() -> None:
    assert reading("on: 1\n404: 2\nnull: 3\n").values == {"on": 1, "404": 2, "null": 3}


@pytest.mark.usefixtures("either_parser")
def test_all_that_may_not_be_there_is_named_at_once() -> None:
    text = """\
a: &anchor 1
b: *anchor
c: !!python/object/apply:os.system [rm]
d:
  <<: {x: 1}
  e: 1
  e: 2
f: .nan
g: [-.inf, 1e999]
h: !local x
? [i]
: 1
j: "\\0"
&k l: 1
"""
    assert faults(text) == [
        "x.yaml:1 a: has an anchor; anchors and aliases are not supported, repeat the value",
        "x.yaml:2 b: is an alias, which is not supported; write the value itself",
        "x.yaml:3 c: has a tag, which is not supported; remove it",
        "x.yaml:5 d.<<: is a merge key, which is not supported; repeat the settings".replace(
            "d.<<", 'd["<<"]'
        ),
        "x.yaml:7 d.e: is given twice; remove one of them",
        "x.yaml:8 f: is not a finite number; put it in quotes if text is meant",
        "x.yaml:9 g[0]: is not a finite number; put it in quotes if text is meant",
        "x.yaml:9 g[1]: is not a finite number; put it in quotes if text is meant",
        "x.yaml:10 h: has a tag, which is not supported; remove it",
        "x.yaml:11: has a key that is not plain text",
        "x.yaml:13 j: contains a NUL character",
        "x.yaml:14 l: has an anchor; anchors and aliases are not supported, repeat the value",
    ]
    assert reading(text).complete
    assert reading(text).values["d"] == {"e": 1}


@pytest.mark.parametrize(
    "text, fault",
    [
        ("a: [1\nb: 2\n", "x.yaml:2: is not valid YAML: "),
        ("a: 'x\n", "x.yaml:2: is not valid YAML: found unexpected end of stream"),
        ("ok: 1\n\ta: b\n", "x.yaml:2: is not valid YAML: "),
        ("ä: ö\nb: \x01\n", "x.yaml:2: is not valid YAML: "),
        ("a: 1\n\0b: 2\n", "x.yaml:2: is not valid YAML: "),
        ("- a\n", "x.yaml:1: must be a mapping of sections"),
        ("text\n", "x.yaml:1: must be a mapping of sections"),
        ("a: 1\n---\nb: 2\n", "x.yaml:2: contains more than one document; remove the line with ---"),
        ("*a : 1\n", "x.yaml:1: has a key that is not plain text"),
    ],
)
def test_syntax_error_names_the_line(text: str, fault: str) -> None:
    assert any(each.startswith(fault) for each in faults(text)), faults(text)


def test_values_before_syntax_error_are_kept() -> None:
    found = reading("a: *b\nc: [\n")
    assert not found.complete
    assert [fault.position and fault.position.line for fault in found.faults] == [1, 3]


def test_a_reference_without_quotes_gets_advice() -> None:
    assert faults("limits: {result_bytes: ${SIZE}}\n")[0].endswith(
        "put quotes around ${…} within braces or brackets"
    )


def test_invalid_utf_8_names_the_position() -> None:
    found = read("a: 1\nb: ä\n".encode("latin-1"), "x.yaml")
    assert [str(fault) for fault in found.faults] == ["x.yaml:2: is not UTF-8 text; save it as UTF-8"]


def bomb() -> str:
    layers = ['a0: &a0 ["lol"]'] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    return "\n".join(layers)


@pytest.mark.parametrize(
    "make, complaint",
    [
        (bomb, "is an alias"),
        (lambda: "a: " + "x" * (10 << 20), "larger than 1024 KiB"),
        (lambda: "[" * 10_000, "nested more than 64 levels"),
        (lambda: "a: " + "{a: " * 10_000, "nested more than 64 levels"),
        (lambda: "".join(" " * n + "a:\n" for n in range(1_000)), "nested more than 64 levels"),
        (lambda: "- " * 10_000, "nested more than 64 levels"),
        (lambda: "a: [" + "1," * (MAX_CONFIG_VALUES + 1) + "]", "more than 100000 values"),
        (lambda: "? " * 10_000, "nested more than 64 levels"),
    ],
    ids=["aliases", "10 MB", "lists", "mappings", "indentation", "dashes", "values", "keys"],
)
@pytest.mark.requirement("I2")
@pytest.mark.check(20)
def test_bombs_are_refused_quickly(make: Callable[[], str], complaint: str) -> None:
    data = make().encode()
    started = perf_counter()
    found = read(data, "x.yaml")
    assert perf_counter() - started < 5
    assert any(complaint in fault.message for fault in found.faults), found.faults[:3]


def test_the_largest_and_the_deepest_that_fit_are_read() -> None:
    deep = "a: " + "[" * (MAX_CONFIG_DEPTH - 1) + "1" + "]" * (MAX_CONFIG_DEPTH - 1)
    assert reading(deep).faults == ()
    assert reading("# " + "x" * (MAX_CONFIG_BYTES - 2)).faults == ()
    assert reading("# " + "x" * (MAX_CONFIG_BYTES - 1)).faults != ()


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="ignore")))
def test_any_bytes_give_values_or_faults(data: bytes) -> None:
    found = read(data, "x.yaml")
    assert found.complete or found.faults


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Zl", "Zp"]))
PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abc", min_size=1), PLAIN))
def test_json_is_read_as_it_is(document: dict[str, Any]) -> None:
    found = reading(json.dumps(document, ensure_ascii=False))
    assert found.faults == ()
    assert found.values == document
