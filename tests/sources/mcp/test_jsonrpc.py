"""Messages go out as JSON-RPC, and nothing comes in that could harm whoever walks it."""

from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.mcp.jsonrpc import (
    END_BYTES,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
    guess_id,
)
from toolcrib.mcp.meta import with_progress_token
from toolcrib.model import Json, JsonObject
from toolcrib.schemas.subschemas import MAX_JSON_DEPTH, MAX_JSON_VALUES, too_deep
from toolcrib.sources.mcp.connection import InvalidResponse
from toolcrib.sources.mcp.request_multiplexer import RequestMultiplexer
from toolcrib.sources.mcp.server_messages import parse_message

WORDS = st.text(max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-(2**31), 2**31) | WORDS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=4)
SPACE = st.text(" \t", max_size=2)


def never_send(_: bytes) -> None:
    raise AssertionError


def never_hear(_method: str, _params: JsonObject) -> None:
    raise AssertionError


async def never_answer(_: bytes) -> None:
    raise AssertionError


def nested(depth: int) -> bytes:
    """An object with so many levels."""
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def test_encoded_request_is_json_rpc() -> None:
    params = b'{"name":"read"}'
    assert orjson.loads(encode_request(7, "tools/call", params)) == {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "read"},
    }
    assert orjson.loads(encode_notification("notifications/initialized", b"{}")) == {
        "jsonrpc": "2.0",
        "method": "notifications/initialized",
        "params": {},
    }
    assert orjson.loads(encode_response("a", b'{"roots":[]}')) == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {"roots": []},
    }
    assert orjson.loads(encode_error(1, -32601, "no")) == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32601, "message": "no"},
    }


@pytest.mark.parametrize("meta", [{}, {"_meta": {"a": 1}}])
def test_progress_token_is_added_to_existing_meta(meta: dict[str, Json]) -> None:
    asked = orjson.loads(with_progress_token(orjson.dumps({"name": "x", **meta}), 9))
    assert asked == {"name": "x", "_meta": {**meta.get("_meta", {}), "progressToken": 9}}


@given(OBJECTS)
def test_every_object_is_decoded_as_it_is(value: dict[str, Json]) -> None:
    assert parse_message(orjson.dumps(value)) == value


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Server listening on stdio",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":"\xff\xfe"}',
        b'{"a":1',
        b"\x00\x01\x02",
        nested(5_000),
        nested(2_000_000),
        b'{"a":' * 3_000_000,
    ],
    ids=lambda data: repr(data[:12]),
)
def test_invalid_json_is_garbled(data: bytes) -> None:
    with pytest.raises(InvalidResponse):
        parse_message(data)


@pytest.mark.parametrize("data", [b"[1]", b"1", b'"text"', b"null"])
def test_a_message_is_an_object(data: bytes) -> None:
    exchange = RequestMultiplexer(never_send, never_hear, send_reply=never_answer)
    if data.startswith(b"["):
        exchange.feed(data)
        assert exchange.unclaimed == 1
    else:
        with pytest.raises(InvalidResponse):
            exchange.feed(data)


def test_depth_is_limited_for_small_messages() -> None:
    parse_message(nested(MAX_JSON_DEPTH))
    with pytest.raises(InvalidResponse, match="64 levels"):
        parse_message(nested(MAX_JSON_DEPTH + 1))


@pytest.mark.parametrize("part", [b"1", b"[]", b'{"k":"v"}', b'"text"', b'"\\"a\\\\",2', b"[[[[[1]]]]]"])
def test_number_of_values_is_limited(part: bytes) -> None:
    with pytest.raises(InvalidResponse, match="100,000 values"):
        parse_message(b'{"a":[' + b",".join([part] * (MAX_JSON_VALUES + 1)) + b"]}")


def test_characters_in_strings_do_not_count() -> None:
    text = 'a "list", [of] {things}\\ ' * 100_000
    value: JsonObject = {"text": text, "list": [[]] * 100}
    assert parse_message(orjson.dumps(value)) == value


@given(st.lists(st.text('"\\{}[],:ab'), min_size=1), st.integers(1, 300))
def test_prescan_accepts_every_message_within_limits(texts: list[str], times: int) -> None:
    value = {"texts": [texts] * times}
    assert too_deep(value) is None or sum(map(len, texts)) * times > MAX_JSON_VALUES
    assert parse_message(orjson.dumps(value)) == value


def first(id: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":{"text":"' % id + b"x" * 2_000 + b'"}}'


def last(id: bytes) -> bytes:
    return b'{"result":{"text":"' + b"x" * 2_000 + b'"},"jsonrpc":"2.0","id":%b}\r' % id


@pytest.mark.parametrize("shape", [first, last])
def test_the_id_of_an_answer_is_found_at_either_end(shape: Callable[[bytes], bytes]) -> None:
    answer = shape(b"12")
    assert guess_id(answer[:END_BYTES], answer[-END_BYTES:]) == 12


@pytest.mark.parametrize(
    "data",
    [
        b'{"id" : 3 , "jsonrpc" : "2.0" , "error" : {}',
        b'{"id":3,"result":',
        b'{ "error":{},"id":3 , "jsonrpc":"2.0"}',
    ],
)
def test_servers_spell_answers_differently(data: bytes) -> None:
    assert guess_id(data, data) == 3


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":3,"method":"ping"}',
        b'{"method":"x","params":{},"jsonrpc":"2.0","id":3}',
        b'{"jsonrpc":"2.0","id":"3","result":{}}',
        b'{"jsonrpc":"2.0","result":{"id":3}}',
        b'{"jsonrpc":"2.0","result":{"text":"\\"id\\":3}',
        b'{"jsonrpc":"2.0","id":1234567890123456789,"result":{}}',
        b"some words about an answer",
        b"",
    ],
)
def test_unknown_message_shape_is_rejected(data: bytes) -> None:
    assert guess_id(data[:END_BYTES], data[-END_BYTES:]) is None


@given(st.integers(0, 10**15 - 1), SPACE, OBJECTS, st.booleans())
def test_any_answer_leads_to_its_request(id: int, space: str, result: dict[str, Json], reverse: bool) -> None:
    parts = [b'"jsonrpc":"2.0"', b'"id":%d' % id, b'"result":' + orjson.dumps(result)]
    joined = f"{space},{space}".encode().join(parts[::-1] if reverse else parts)
    data = f"{space}{{{space}".encode() + joined + b"}"
    assert guess_id(data[:END_BYTES], data[-END_BYTES:]) == id


@pytest.mark.parametrize(
    "text, read",
    [
        (rb"cut \ud83d", "cut \ufffd"),
        (rb"\uDE00 and \ud83d\ud83d\ude00", "\ufffd and \ufffd\U0001f600"),
        (rb"\ud83d \\ud83d \\\ud83d \n", "\ufffd \\ud83d \\\ufffd \n"),
    ],
)
def test_half_a_character_does_not_cost_the_message(text: bytes, read: str) -> None:
    assert parse_message(b'{"text":"%b"}' % text) == {"text": read}


@pytest.mark.parametrize("text", [rb'"\ud83', rb'"\ud83d', b'"\\ud83d" x'])
def test_other_malformed_messages_are_garbled(text: bytes) -> None:
    with pytest.raises(InvalidResponse, match="not JSON"):
        parse_message(text)


def test_expensive_repair_is_garbled() -> None:
    with pytest.raises(InvalidResponse, match="surrogate"):
        parse_message(b'{"text":"\\ud83d%b"}' % (rb"\n" * (1 << 20)))
