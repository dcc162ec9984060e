"""A request says of its caller what it may, carries what passes through, and nothing of a connection."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.mcp.meta import with_progress_token
from toolcrib.mcp.revisions import Era
from toolcrib.model import Origin
from toolcrib.sources.mcp.envelope import caller_meta, prepared, prepared_raw
from toolcrib.testing import a_call, a_tool

TOOL = a_tool("fs:read", family="mcp")
UUID = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0ff"
RESERVED = "io.modelcontextprotocol/"
TRACED: dict[str, Any] = {"id": UUID, "origin": Origin(trace_id=UUID)}
PARENT = {"traceparent": "00-0f1e2d3c4b5a49788695a4b3c2d1e0ff-8695a4b3c2d1e0ff-01"}


def params(era: Era, said: bytes | None = None, **fields: Any) -> dict[str, Any]:
    return orjson.loads(prepared(TOOL, era).params(a_call(TOOL, **fields), said))


def raw(era: Era, method: str = "resources/read", **fields: Any) -> dict[str, Any]:
    return orjson.loads(prepared_raw(TOOL, method, era).params(a_call(TOOL, **fields)))


def test_envelope_declares_capabilities_of_the_caller() -> None:
    assert caller_meta({}, None) is caller_meta({}, "shouting") is None
    said = caller_meta({"elicitation": {}}, "warning")
    meta = params("modern", said)["_meta"]
    assert meta[f"{RESERVED}clientCapabilities"] == {"elicitation": {}}
    assert meta[f"{RESERVED}logLevel"] == "warning"
    assert meta[f"{RESERVED}clientInfo"]["name"] == "toolcrib"
    assert caller_meta({"elicitation": {}}, "warning") is said
    long = {"elicitation": {"x": "y" * 5_000}}
    assert caller_meta(long, None) is not caller_meta(long, None)
    assert params("modern", caller_meta(long, None))["_meta"][f"{RESERVED}clientCapabilities"] == long
    plain = params("modern")["_meta"]
    assert plain[f"{RESERVED}clientCapabilities"] == {}
    assert f"{RESERVED}logLevel" not in plain


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.requirement("D14")
def test_vendor_meta_passes_connection_meta_does_not(era: Era) -> None:
    meta = {"vendor/x": {"y": 1}, "progressToken": 1, f"{RESERVED}logLevel": "debug", "traceparent": "forged"}
    sent = params(era, meta=meta, **TRACED)
    assert {key: each for key, each in sent["_meta"].items() if not key.startswith(RESERVED)} == {
        "vendor/x": {"y": 1},
        **PARENT,
    }
    assert f"{RESERVED}logLevel" not in sent["_meta"]
    untraced = params(era, meta={"traceparent": "theirs"})
    assert untraced["_meta"]["traceparent"] == "theirs"


@pytest.mark.requirement("D14")
def test_answers_and_state_return_to_the_asking_server() -> None:
    again: dict[str, Any] = {"answers": {"name": {"action": "accept"}}, "state": 's"1'}
    modern = params("modern", **again)
    assert (modern["inputResponses"], modern["requestState"]) == (again["answers"], 's"1')
    assert params("legacy", **again).keys() == {"name", "arguments"}
    assert raw("modern", **again)["requestState"] == 's"1'
    with pytest.raises(Refused) as raised:
        params("modern", answers={"x": {"n": 2**70}})
    assert matches("sources", "answers and state return to the asking server", str(raised.value))


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_raw_requests_have_their_arguments_for_parameters(era: Era) -> None:
    asked = {"uri": "file:///a", "_meta": {f"{RESERVED}x": 1}, "requestState": "forged"}
    sent = raw(era, arguments=asked, meta={"vendor/x": 1}, **TRACED)
    meta = sent.pop("_meta")
    assert sent == {"uri": "file:///a"}
    assert meta["vendor/x"] == 1
    assert meta["traceparent"] == PARENT["traceparent"]
    assert (f"{RESERVED}protocolVersion" in meta) == (era == "modern")
    assert raw("legacy", arguments={}) == {}


@pytest.mark.parametrize(
    "method, arguments, about",
    [
        ("resources/read", {"uri": "file:///a", "name": "x"}, "file:///a"),
        ("prompts/get", {"name": "hello"}, "hello"),
        ("prompts/get", {"name": 7}, None),
        ("completion/complete", {"name": "x", "uri": "y"}, None),
    ],
)
def test_raw_request_names_its_subject(method: str, arguments: dict[str, Any], about: str | None) -> None:
    ready = prepared_raw(TOOL, method, "modern")
    assert (ready.method, ready.subject(a_call(TOOL, arguments=arguments))) == (method, about)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.text(max_size=8), JSON, max_size=4)


@given(
    arguments=OBJECT,
    meta=OBJECT,
    answers=OBJECT,
    traced=st.booleans(),
    era=st.sampled_from(["legacy", "modern"]),
)
def test_call_metadata_arrives_unchanged(
    arguments: dict[str, Any], meta: dict[str, Any], answers: dict[str, Any], traced: bool, era: Era
) -> None:
    more: dict[str, Any] = {"meta": meta, "answers": answers, **(TRACED if traced else {})}
    ready = prepared(TOOL, era)
    encoded = ready.params(a_call(TOOL, arguments=arguments, **more))
    sent = orjson.loads(encoded)
    assert (sent["name"], sent["arguments"]) == ("read", arguments)
    assert sent.get("inputResponses", {}) == (answers if era == "modern" else {})
    kept = {key: each for key, each in sent.get("_meta", {}).items() if not key.startswith(RESERVED)}
    assert kept == {**meta, **(PARENT if traced else {})}
    tokened = orjson.loads(with_progress_token(encoded, 7))
    assert tokened["_meta"].pop("progressToken") == 7
    assert tokened == {"_meta": {}, **sent}
