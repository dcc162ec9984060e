"""Keys that occur twice in one object are found, whatever they are written like; others never are."""

import json
import tracemalloc
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.schemas.json_parsing import MAX_PATH_CHARACTERS, case_variant, duplicate_key

pytestmark = pytest.mark.requirement("I5")
FREE = frozenset({"arguments"})


def found(text: bytes) -> str | None:
    return duplicate_key(text, orjson.loads(text), FREE)


@pytest.mark.parametrize(
    "text, path",
    [
        (b'{"name":"a","name":"b"}', "name"),
        (b'{"name":"a","n\\u0061me":"b"}', "name"),
        (b'{"name" : "a", "name"\n:\t"b"}', "name"),
        (b'{"name" :"a:b","name":"c"}', "name"),
        (b'{"params":{"_meta":{"a":1,"a":2}}}', "params._meta.a"),
        (b'[{"a":1},{"a":1,"b":[[{"c":1,"c":2}]]}]', "1.b.0.0.c"),
        (b'{"arguments":{"a":1},"arguments":{"b":1}}', "arguments"),
        (b'{"arguments":{"a":1,"a":2},"x":{"b":1,"b":2}}', "x.b"),
        (b'{"\\u00e9":1,"\xc3\xa9":2}', "é"),
        (b'{"a":"\\u003a","b":1,"b":2}', "b"),
        (b'{"a":"\\u003A","b":1,"b":2}', "b"),
        (b'{"a":0.' + b"9" * 5000 + b',"a":1}', "a"),
    ],
)
def test_duplicate_is_found_with_its_path(text: bytes, path: str) -> None:
    assert found(text) == path


@pytest.mark.parametrize(
    "text",
    [
        b'{"name":"add","arguments":{"name":1}}',
        b'{"name":"a:b \\":","arguments":{"at":"12:30 : now","url":"http://x/"}}',
        b'{"arguments":{"a":1,"a":2}}',
        b'{"arguments":{"x":{"a":1,"a":2}},"b":"c : d"}',
        b'[{"a":1},{"a":1}]',
        b'{"a":{"a":{"a":[]}}}',
        b'"a:b"',
        b"3",
        b"[]",
        b"{}",
    ],
)
def test_no_duplicate_is_found_where_there_is_none(text: bytes) -> None:
    assert found(text) is None


LONG_KEY = b"k" * (1 << 20)
MEMBERS = b"".join(b'"m%d":[1],' % number for number in range(300))


@pytest.mark.parametrize(
    "below", [b"{" + MEMBERS + b'"z":{"d":1,"d":2}}', b"[" + b"[1]," * 300 + b'{"d":1,"d":2}]']
)
def test_search_takes_memory_in_proportion_to_the_text(below: bytes) -> None:
    text = b'{"' + LONG_KEY + b'":' + below + b"}"
    value = orjson.loads(text)
    tracemalloc.start()
    path = duplicate_key(text, value)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path == LONG_KEY.decode()[:MAX_PATH_CHARACTERS]
    # Writing a string takes sixteen times its length for a moment; a copy for each member, three hundred.
    assert peak < 32 * len(text)


def test_long_paths_are_cut_off_at_their_end() -> None:
    path = found(b'{"' + b"a" * 150 + b'":[{"' + b"b" * 300 + b'":1,"' + b"b" * 300 + b'":2}]}')
    assert path == ".".join(("a" * 150, "0", "b" * 300))[:MAX_PATH_CHARACTERS]


class Pairs(list[tuple[str, Any]]):
    """An object with its repeated keys."""


def write(value: Any) -> str:
    """Write JSON with a space before each colon."""
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)} :{write(each)}" for key, each in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, cast("list[Any]", value))) + "]"
    return json.dumps(value)


def repeats(value: Any) -> bool:
    if isinstance(value, Pairs):
        own = len({key for key, _ in value}) < len(value)
        return own or any(repeats(each) for _, each in value)
    return isinstance(value, list) and any(map(repeats, cast("list[Any]", value)))


def lists_and_objects(inner: Any) -> Any:
    pairs = st.lists(st.tuples(st.sampled_from("ab:"), inner), max_size=3)
    return st.lists(inner, max_size=3) | pairs.map(Pairs)


VALUES: Any = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(':" \\a', max_size=4), lists_and_objects, max_leaves=8
)


@given(VALUES)
def test_agrees_with_a_naive_search(value: Any) -> None:
    text = write(value).encode()
    for written in (text, text.replace(b'":"', b'"\\u003a"')):
        assert (duplicate_key(written, orjson.loads(written)) is not None) == repeats(value)


def test_case_variants() -> None:
    assert case_variant({"method": 1, "params": 2}) is None
    assert case_variant({"method": 1, "Method": 2}) == "Method"
