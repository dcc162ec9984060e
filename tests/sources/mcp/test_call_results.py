"""What a server answers becomes data, content or an error; what went wrong on the way says what it means."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.errors import Broken, Failed, Lost, ToolcribError, Unavailable
from toolcrib.model import Ask, Hints, JsonObject, Result, Tool
from toolcrib.sources.mcp.call_results import (
    MAX_INPUT_REQUESTS,
    MAX_MESSAGE_CHARS,
    MAX_STATE_CHARS,
    error_of,
    raw_of,
    result_of,
)
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    NotSent,
    ResponseTooLarge,
    ServerError,
)
from toolcrib.testing import a_tool

TOOL = a_tool("fs:read", family="mcp")
IMAGE = {"type": "image", "data": "eA==", "mimeType": "image/png"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def read(*blocks: Any, **fields: Any) -> Result:
    return result_of({"content": list(blocks), **fields}, TOOL)


def test_structured_data_is_the_data_and_the_blocks_are_kept() -> None:
    result = read(text("two"), structuredContent={"n": 2}, resultType="complete")
    assert (result.data, result.content, result.structured) == ({"n": 2}, (text("two"),), True)


def test_an_empty_structure_is_still_a_structure() -> None:
    assert read(text("x"), structuredContent={}).data == {}
    assert read(text("x"), structuredContent=[]).structured


@pytest.mark.parametrize(
    "blocks, data",
    [
        ([text("hello")], "hello"),
        ([text('{"a": [1]}')], {"a": [1]}),
        ([text("[1, 2]")], [1, 2]),
        ([text("{not json")], "{not json"),
        ([text("[NaN]")], "[NaN]"),
        ([text("7")], "7"),
        ([text("")], ""),
        ([text("[" * 100 + "]" * 100)], "[" * 100 + "]" * 100),
        ([text('{"a": 1}'), text("b")], '{"a": 1}\nb'),
        ([text("see"), IMAGE], [text("see"), IMAGE]),
        ([IMAGE], [IMAGE]),
        ([], ""),
    ],
)
def test_without_structure_the_text_is_read(blocks: list[Any], data: Any) -> None:
    result = read(*blocks)
    assert result.data == data
    assert result.content == tuple(blocks)
    assert not result.structured


def test_no_content_at_all_is_no_content() -> None:
    assert result_of({}, TOOL).data == ""
    assert result_of({"structuredContent": {"a": 1}}, TOOL).content == ()


@pytest.mark.parametrize(
    "content",
    [
        "text",
        {"type": "text"},
        [7],
        ["x"],
        [{}],
        [{"type": 3}],
        [{"type": "text"}],
        [{"type": "text", "text": 1}],
    ],
)
def test_content_of_another_shape_breaks_the_contract(content: Any) -> None:
    with pytest.raises(Broken) as caught:
        result_of({"content": content}, TOOL)
    assert matches("sources", f"content {content} breaks the contract", str(caught.value))
    assert caught.value.problem.code == "CONTRACT_VIOLATION"


def test_tool_error_is_a_problem_with_its_message() -> None:
    result = read(text("no such"), IMAGE, text("file"), isError=True, _meta={"a": 1})
    assert result.problem is not None
    assert (result.problem.code, result.problem.message) == ("TOOL_FAILED", "no such\nfile")
    assert len(result.content) == 3
    assert result.meta == {"a": 1}
    assert result.data is None


def test_empty_error_gets_default_text_long_one_is_cut() -> None:
    silent, long = read(IMAGE, isError=True).problem, read(text("x" * 9_999), isError=True).problem
    assert silent is not None
    assert "but not why" in silent.message
    assert long is not None
    assert len(long.message) == MAX_MESSAGE_CHARS


def test_extra_meta_passes_except_reserved_keys() -> None:
    meta = {"vendor/key": 1, "io.modelcontextprotocol/serverInfo": {"name": "x"}}
    assert read(text("a"), _meta=meta).meta == {"vendor/key": 1}
    assert read(text("a"), _meta="x").meta == {}
    assert read(text("a")).meta == {}


def test_question_without_capability_is_refused_with_text() -> None:
    with pytest.raises(Failed) as raised:
        result_of({"resultType": "input_required", "inputRequests": {}}, TOOL)
    assert matches("sources", "question without capability is refused with text", str(raised.value))


CAN: JsonObject = {"elicitation": {}, "roots": {}}
FORM: JsonObject = {"method": "elicitation/create", "params": {"message": "Who?"}}


def asks(questions: Any, state: Any = None) -> JsonObject:
    return {"resultType": "input_required", "inputRequests": questions, "requestState": state}


@pytest.mark.requirement("D14")
@pytest.mark.parametrize("read", [result_of, raw_of])
def test_input_required_answer_asks_the_caller(read: Any) -> None:
    meta = {"_meta": {"progressToken": 1, "vendor/x": 1}}
    form = {"method": "elicitation/create", "params": {"message": "Who?", **meta}}
    found = read(asks({"who": form, "where": {"method": "roots/list"}}, "s"), TOOL, CAN)
    expected: dict[str, Any] = {
        "who": {"method": "elicitation/create", "params": {"message": "Who?", "_meta": {"vendor/x": 1}}},
        "where": {"method": "roots/list", "params": {}},
    }
    assert found.ask == Ask(questions=expected, state="s")
    assert (found.problem, found.data) == (None, None)
    assert read(asks(None, "later"), TOOL, {}).ask == Ask(questions={}, state="later")


@pytest.mark.requirement("D14")
@pytest.mark.parametrize(
    "answer",
    [
        asks(None),
        asks({}),
        asks([FORM]),
        asks("who", "s"),
        asks({"a": FORM}, 7),
        asks({"a": FORM}, "s" * (MAX_STATE_CHARS + 1)),
        asks({str(number): FORM for number in range(MAX_INPUT_REQUESTS + 1)}),
        asks({"a" * 300: FORM}),
        asks({"a": "who?"}),
        asks({"a": {"method": 7}}),
        asks({"a": {**FORM, "params": []}}),
        asks({"a": {**FORM, "params": {"message": "x" * (1 << 20)}}}),
        asks({"a": {"method": "sampling/createMessage", "params": {}}}),
        asks({"a": {"method": "tools/call", "params": {}}}),
        asks({"a": {**FORM, "params": {"mode": "url"}}}),
    ],
)
def test_a_question_that_is_none_breaks_the_contract(answer: JsonObject) -> None:
    for read in (result_of, raw_of):
        with pytest.raises(Broken) as caught:
            read(answer, TOOL, CAN)
        assert caught.value.problem.code == "CONTRACT_VIOLATION"


def test_raw_answer_omits_protocol_fields() -> None:
    contents = [{"uri": "file:///a", "text": "x", "_meta": {"vendor/x": 1}}]
    answer = {"resultType": "complete", "contents": contents, "ttlMs": 1, "cacheScope": "private"}
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "x"}, "vendor/y": 2}
    assert raw_of({**answer, "_meta": meta}, TOOL).data == {"contents": contents, "_meta": {"vendor/y": 2}}
    assert raw_of(answer, TOOL).data == {"contents": contents}


def test_all_kinds_of_content_pass_as_they_are() -> None:
    annotated = {"annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"vendor/x": [1]}}
    blocks = [
        {**text("see"), **annotated},
        {**IMAGE, **annotated},
        {"type": "audio", "data": "eA==", "mimeType": "audio/wav", **annotated},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "eA=="}, **annotated},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3, **annotated},
    ]
    result = read(*blocks, structuredContent=[1, None], _meta={"vendor/y": {"z": 1}})
    assert (list(result.content), result.data, result.meta) == (blocks, [1, None], {"vendor/y": {"z": 1}})
    failed = read(*blocks, isError=True, structuredContent={"why": 7})
    assert (list(failed.content), failed.data) == (blocks, {"why": 7})
    assert failed.problem is not None


@pytest.mark.requirement("D14")
@pytest.mark.parametrize(
    "data, kept",
    [
        ({"requiredCapabilities": {"sampling": {}}}, {"requiredCapabilities": {"sampling": {}}}),
        (0, 0),
        ('s"3\\cret', "***"),
        ([{'a s"3\\cret': ['s"3\\cret', 3.5]}], [{"a ***": ["***", 3.5]}]),
        (None, None),
        ("x" * (1 << 20), None),
    ],
)
def test_protocol_error_details_are_kept_for_mcp_clients(data: Any, kept: Any) -> None:
    refusal = JsonRpcError(-32021, 'not with s"3\\cret', data)
    problem = error_of(refusal, TOOL, lambda said: said.replace('s"3\\cret', "***")).problem
    expected = {"code": -32021, "message": "not with ***", "data": kept}
    assert problem.tool_code == "-32021"
    assert problem.details == {key: each for key, each in expected.items() if each is not None}


@pytest.mark.parametrize("kind", ["task", 7, {}])
def test_another_kind_of_answer_breaks_the_contract(kind: Any) -> None:
    with pytest.raises(Broken) as raised:
        result_of({"resultType": kind, "content": []}, TOOL)
    assert matches("sources", "another kind of answer breaks the contract", str(raised.value), kind=kind)


FAULTS: list[tuple[ServerError, type[ToolcribError], str, bool]] = [
    (NotSent("refused"), Unavailable, "NETWORK_ERROR", True),
    (ConnectionLost("gone"), Lost, "OUTCOME_UNKNOWN", False),
    (HttpStatusError(401, "no"), Unavailable, "HTTP_ERROR", False),
    (HttpStatusError(404, "no"), Unavailable, "HTTP_ERROR", False),
    (HttpStatusError(429, "no"), Unavailable, "HTTP_ERROR", True),
    (HttpStatusError(502, "no"), Lost, "HTTP_ERROR", False),
    (ResponseTooLarge("9 MiB"), Broken, "RESULT_TOO_LARGE", False),
    (InvalidResponse("not JSON"), Broken, "CONTRACT_VIOLATION", False),
    (JsonRpcError(-32602, "bad"), Failed, "TOOL_FAILED", False),
]


@pytest.mark.parametrize("fault, kind, code, retryable", FAULTS)
def test_every_fault_has_its_meaning(
    fault: ServerError, kind: type[ToolcribError], code: str, retryable: bool
) -> None:
    error = error_of(fault, TOOL)
    assert type(error) is kind
    assert (error.problem.code, error.problem.retryable) == (code, retryable)


@pytest.mark.parametrize("safe", [a_tool("fs:read", category="query"), a_tool("fs:read", idempotent=True)])
def test_a_safe_tool_may_be_tried_again(safe: Tool) -> None:
    cut, status = error_of(ConnectionLost("gone"), safe), error_of(HttpStatusError(503, "busy"), safe)
    assert (cut.problem.code, cut.problem.retryable) == ("SOURCE_DOWN", True)
    assert (status.problem.code, status.problem.retryable) == ("HTTP_ERROR", True)
    assert matches("sources", "a safe tool may be tried again", cut.problem.message)
    assert "safe to try again" in status.problem.message


def test_possibly_executed_is_reported() -> None:
    for fault in (ConnectionLost("gone"), HttpStatusError(504, "late")):
        name = f"possibly executed is reported after {type(fault).__name__}"
        assert matches("sources", name, error_of(fault, TOOL).problem.message)


def test_error_keeps_server_code_and_redacted_message() -> None:
    said = error_of(
        JsonRpcError(-32602, "key s3cret " + "x" * 9_999), TOOL, lambda words: words.replace("s3cret", "***")
    )
    assert said.problem.tool_code == "-32602"
    assert said.problem.message.startswith("key *** x")
    assert len(said.problem.message) == MAX_MESSAGE_CHARS
    assert "but not why" in error_of(JsonRpcError(1, ""), TOOL).problem.message


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["content", "structuredContent", "isError", "_meta", "resultType"])


@given(st.dictionaries(keys, anything))
def test_any_answer_is_a_result_or_an_error_of_ours(answer: dict[str, Any]) -> None:
    with suppress(Broken, Failed):
        assert isinstance(result_of(answer, TOOL), Result)


@pytest.mark.requirement("E9")
def test_server_hints_are_used_and_invalid_ones_ignored() -> None:
    given = {"confidence": 0.4, "sourceQuality": "low", "validityPeriod": "short"}

    def hints(said: object) -> Hints | None:
        answer = {"content": [{"type": "text", "text": "x"}], "_meta": {"toolcrib/agentHints": said}}
        return result_of(answer, a_tool()).hints

    taken = hints(given)
    assert taken is not None
    assert (taken.confidence, taken.source_quality) == (0.4, "low")
    assert [hints(bad) for bad in (given | {"confidence": 1.7}, {"odd": 1}, "text", None)] == [None] * 4
