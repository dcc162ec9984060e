"""The required envelope of a modern request, and the headers that must mirror it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value, encode_header_value, validate_mcp_param_headers

from toolcrib.frontends.mcp.request import ProtocolError, check_mirrors, peer_of
from toolcrib.mcp.headers import decoded_value, mirrors_of
from toolcrib.mcp.jsonrpc import HEADER_MISMATCH, INVALID_PARAMS, UNSUPPORTED_VERSION
from toolcrib.mcp.revisions import MODERN
from toolcrib.testing import a_caller

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
LEVEL = "io.modelcontextprotocol/logLevel"
RIGHT: dict[str, Any] = {VERSION: MODERN, CAPABILITIES: {"sampling": {}}}


def message(meta: Any, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}


def headers(**more: str) -> dict[bytes, bytes]:
    given = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "x"}
    named = {key.replace("_", "-"): value for key, value in more.items()}
    return {key.encode(): value.encode() for key, value in (given | named).items() if value}


def fault(sent: dict[str, Any], given: dict[bytes, bytes] | None = None) -> int | None:
    try:
        peer_of(sent, a_caller(), given)
    except ProtocolError as error:
        return error.code
    return None


def test_client_info_is_read_from_the_envelope() -> None:
    meta = {**RIGHT, CLIENT: {"name": "c", "version": "2"}, LEVEL: "warning"}
    peer = peer_of(message(meta, name="x"), a_caller(), headers())
    assert peer.modern
    assert peer.client == ("c", "2")
    assert peer.capabilities == {"sampling": {}}
    assert peer.session is None


@pytest.mark.parametrize(
    "meta, code",
    [
        (None, INVALID_PARAMS),
        ({}, INVALID_PARAMS),
        ({VERSION: MODERN}, INVALID_PARAMS),
        ({CAPABILITIES: {}}, INVALID_PARAMS),
        ({**RIGHT, CAPABILITIES: 5}, INVALID_PARAMS),
        ({**RIGHT, CLIENT: {"name": 5}}, INVALID_PARAMS),
        ({**RIGHT, LEVEL: "loud"}, INVALID_PARAMS),
        ({**RIGHT, LEVEL: ["info"]}, INVALID_PARAMS),
        ({**RIGHT, VERSION: 5}, INVALID_PARAMS),
        ({**RIGHT, VERSION: "2099-01-01"}, UNSUPPORTED_VERSION),
        ({**RIGHT, CLIENT: None}, None),
    ],
)
@pytest.mark.check(15)
def test_incomplete_envelope_is_refused(meta: Any, code: int | None) -> None:
    assert fault(message(meta)) == code


@pytest.mark.parametrize(
    "given, code",
    [
        ({}, None),
        ({"mcp_method": "tools/list"}, HEADER_MISMATCH),
        ({"mcp_method": ""}, HEADER_MISMATCH),
        ({"mcp_method": "TOOLS/CALL"}, HEADER_MISMATCH),
        ({"mcp_name": "y"}, HEADER_MISMATCH),
        ({"mcp_name": ""}, HEADER_MISMATCH),
        ({"mcp_name": "=?base64?eA==?="}, None),
        ({"mcp_protocol_version": ""}, HEADER_MISMATCH),
        ({"mcp_protocol_version": "2025-11-25"}, HEADER_MISMATCH),
    ],
)
def test_headers_must_mirror_the_message(given: dict[str, str], code: int | None) -> None:
    assert fault(message(RIGHT, name="x"), headers(**given)) == code


def test_header_mismatch_is_reported_first() -> None:
    assert fault(message({**RIGHT, VERSION: "v999"}, name="x"), headers()) == HEADER_MISMATCH


@given(st.text())
def test_a_value_comes_back_out_of_its_header(text: str) -> None:
    assert decoded_value(encode_header_value(text).encode()) == text


PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126))


@given(PLAIN | PLAIN.map(lambda text: f"=?base64?{text}?="))
def test_headers_are_read_as_the_sdk_reads_them(text: str) -> None:
    assert decoded_value(text.encode()) == decode_header_value(text)


def test_a_value_that_cannot_be_decoded_means_nothing() -> None:
    assert decoded_value("=?base64?\x80?=".encode("latin-1")) is None
    assert decoded_value(b"=?base64?gA==?=") is None


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "on": {"type": "boolean", "x-mcp-header": "On"},
        "deep": {"type": "object", "properties": {"er": {"type": "string", "x-mcp-header": "Er"}}},
    },
}
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())
HEADERS = st.dictionaries(
    st.sampled_from(["mcp-param-region", "mcp-param-count", "mcp-param-on", "mcp-param-er"]),
    st.sampled_from(["eu", "1", "1.0", "1.5", "true", "false", "=?base64?ZXU=?=", "=?base64?!?=", "1e3"])
    | st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1),
)


@given(
    st.dictionaries(st.sampled_from(["region", "count", "on", "deep"]), VALUES | st.just({"er": "eu"})),
    HEADERS,
)
def test_header_arguments_compare_as_in_the_sdk(arguments: dict[str, Any], given: dict[str, str]) -> None:
    theirs = validate_mcp_param_headers(SCHEMA, arguments, given)
    try:
        check_mirrors(
            mirrors_of(SCHEMA), arguments, {key.encode(): value.encode() for key, value in given.items()}
        )
        ours = None
    except ProtocolError as error:
        ours = error.code
    assert ours == (None if theirs is None else theirs.code)
