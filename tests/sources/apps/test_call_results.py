"""What an app answers, in either shape, becomes data, content or an error that says what it means."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.apps.errors import MAX_APP_ERROR_CHARS
from toolcrib.egress.json_post import PostResponse, PostResponseTooLarge, UrlForbidden
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp
from toolcrib.errors import Broken, Lost, ToolcribError, Unavailable
from toolcrib.formats.mcp import encode as as_mcp
from toolcrib.formats.rest import as_json
from toolcrib.model import Hints, Problem, Result, Voice
from toolcrib.sources.apps import MAX_FOLLOW_UPS, error_of, result_of
from toolcrib.testing import a_tool

TOOL = a_tool("com.example.todo:add", family="app")
SAFE = a_tool("com.example.todo:list", family="app", category="query")
IDEMPOTENT = a_tool("com.example.todo:put", family="app", idempotent=True)


def reply(body: object, status: int = 200, kind: str = "application/json") -> PostResponse:
    return PostResponse(status, kind, body if isinstance(body, bytes) else json.dumps(body).encode())


def read(**said: Any) -> Result:
    return result_of(reply(said), TOOL)


def failed(**said: Any) -> Problem:
    problem = read(**said).problem
    assert problem is not None
    return problem


def raised(body: object, status: int = 200, kind: str = "application/json") -> ToolcribError:
    with pytest.raises(ToolcribError) as error:
        result_of(reply(body, status, kind), TOOL)
    return error.value


# The newer shape


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("content", ["Reminder set.", {"id": 7, "tags": ["a"]}, [1, 2], "", 0, False])
def test_content_reaches_rest_as_the_app_gave_it(content: Any) -> None:
    result = read(success=True, content=content)
    assert result.data == content
    assert as_json(result)["content"] == content


def test_mcp_text_result_is_text_block_object_is_structured() -> None:
    text = json.loads(as_mcp(read(success=True, content="Set."), b"{}"))
    assert text["content"] == [{"type": "text", "text": "Set."}]
    assert "structuredContent" not in text
    thing = json.loads(as_mcp(read(success=True, content={"id": 7})))
    assert thing["structuredContent"] == {"id": 7}
    assert thing["content"] == [{"type": "text", "text": '{"id":7}'}]


@pytest.mark.parametrize("content, text", [("Seven.", "Seven."), ({"said": 7}, '{"said":7}')])
def test_content_is_for_the_model_and_data_for_programs(content: object, text: str) -> None:
    result = read(success=True, content=content, data={"id": 7})
    assert (result.data, result.structured) == ({"id": 7}, True)
    assert as_json(result)["content"] == text
    assert json.loads(as_mcp(result))["structuredContent"] == {"id": 7}


def test_data_without_extra_text_needs_no_blocks() -> None:
    for said in (
        {"data": {"id": 7}},
        {"data": {"id": 7}, "content": {"id": 7}},
        {"data": {"id": 7}, "content": ""},
    ):
        result = read(success=True, **said)
        assert (result.data, result.content) == ({"id": 7}, ())


def test_bare_success_is_accepted() -> None:
    assert read(success=True).data == ""
    assert read(success=True, message="Done.").data == "Done."


def test_a_sentence_and_wishes_for_the_voice_go_along() -> None:
    wishes = {"suppressVoiceResponse": True, "suggestedFollowUps": ["Snooze it", "Show all"]}
    result = read(success=True, content="x", message="It is set.\n", mentraExtensions=wishes)
    assert result.message == "It is set."
    assert result.voice == Voice(suppress=True, follow_ups=("Snooze it", "Show all"))


@pytest.mark.parametrize(
    "wishes",
    [
        None,
        "silent",
        [],
        {"suppressVoiceResponse": "yes"},
        {"suppressVoiceResponse": 1},
        {"suggestedFollowUps": "x"},
    ],
)
def test_wishes_that_are_none_are_not_there(wishes: object) -> None:
    assert read(success=True, content="x", mentraExtensions=wishes, message=5).voice == Voice()


def test_follow_ups_are_few_and_texts() -> None:
    asked = [1, None, "", *(f"ask {n}" for n in range(99))]
    voice = read(success=True, content="x", mentraExtensions={"suggestedFollowUps": asked}).voice
    assert voice.follow_ups[0] == "ask 0"
    assert len(voice.follow_ups) == MAX_FOLLOW_UPS - 3


@pytest.mark.requirement("E9")
def test_hints_are_taken_and_broken_ones_are_as_good_as_none() -> None:
    given = {"confidence": 0.4, "sourceQuality": "low", "validityPeriod": "short"}

    def hints(said: object) -> Hints | None:
        return read(success=True, content="x", agentHints=said).hints

    taken = hints(given)
    assert taken is not None
    assert (taken.confidence, taken.source_quality) == (0.4, "low")
    assert [hints(bad) for bad in (given | {"confidence": 1.7}, {"odd": 1}, "text", None)] == [None] * 4


@pytest.mark.requirement("D5")
def test_app_failure_keeps_code_message_and_retryable() -> None:
    problem = failed(
        success=False, error={"code": "NO_SUCH_LIST", "message": "No list a.", "retryable": True}
    )
    assert (problem.code, problem.tool_code, problem.message) == ("TOOL_FAILED", "NO_SUCH_LIST", "No list a.")
    assert problem.retryable
    assert not failed(success=False, error={"code": "X", "message": "m", "retryable": "yes"}).retryable


@pytest.mark.requirement("D5")
def test_app_handler_error_code_is_kept() -> None:
    problem = failed(success=False, error={"code": "HANDLER_ERROR", "message": "kaput", "retryable": False})
    assert (problem.code, problem.tool_code, problem.message) == ("HANDLER_ERROR", None, "kaput")
    assert not problem.retryable


def test_a_code_of_ours_in_an_apps_mouth_is_the_apps() -> None:
    problem = failed(success=False, error={"code": "UNAUTHENTICATED", "message": "Sign in first."})
    assert (problem.code, problem.tool_code) == ("TOOL_FAILED", "UNAUTHENTICATED")


@pytest.mark.parametrize(
    "said, message",
    [
        ({}, "but not why"),
        ({"error": None}, "but not why"),
        ({"error": "it broke"}, "it broke"),
        ({"error": {"message": ["x"]}}, "but not why"),
        ({"message": "in its old place"}, "in its old place"),
        ({"error": {"message": "<!DOCTYPE html><html>boom</html>"}}, "but not why"),
    ],
)
def test_failure_without_message_is_a_failure(said: dict[str, Any], message: str) -> None:
    problem = failed(success=False, **said)
    assert problem.code == "TOOL_FAILED"
    assert message in problem.message


def test_message_is_one_bounded_line() -> None:
    problem = failed(success=False, error={"code": "C" * 999, "message": "a\n\tb\x00\x1b[31m" + "x" * 99_999})
    assert problem.message.startswith("a b [31mxxx")
    assert len(problem.message) == MAX_APP_ERROR_CHARS
    assert problem.tool_code == "C" * 100


def test_a_failure_may_wish_for_silence_and_hint() -> None:
    wishes = {"suppressVoiceResponse": True}
    result = read(
        success=False, error={"message": "no"}, mentraExtensions=wishes, agentHints={"confidence": 0.1}
    )
    assert result.voice.suppress
    assert result.hints is not None


# The older shape


@pytest.mark.requirement("D6")
@pytest.mark.parametrize(
    "given, data", [("added milk", "added milk"), (None, ""), ({"n": [1]}, {"n": [1]}), ("", ""), (3, 3)]
)
def test_a_reply_is_the_answer(given: object, data: object) -> None:
    result = read(status="success", reply=given)
    assert (result.data, result.problem, result.voice) == (data, None, Voice())
    assert as_json(result)["content"] == data


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("literal", ["GIVE_APP_CONTROL_OF_TOOL_RESPONSE", "GIVE_APP_CONTROL_OF_TOOL_REPONSE"])
def test_an_app_that_takes_over_the_answer_silences_the_voice(literal: str) -> None:
    result = read(status="success", reply=literal)
    assert result.voice == Voice(suppress=True)
    assert literal not in str(result.data)


def test_legacy_failure_keeps_its_message() -> None:
    problem = failed(status="error", message="no such todo")
    assert (problem.code, problem.message, problem.tool_code) == ("TOOL_FAILED", "no such todo", None)
    assert not problem.retryable


def test_the_newer_shape_decides_where_both_are_there() -> None:
    assert read(success=True, status="error", content="x", reply="y").data == "x"
    assert read(success=None, status="success", reply="y").data == "y"


# Neither


@pytest.mark.requirement("D5")
@pytest.mark.parametrize(
    "body, kind, named",
    [
        (b"", "application/json", "it is empty"),
        (b" \n", "", "it is empty"),
        (b"<html><body>Welcome</body></html>", "text/html", "a page of HTML"),
        (b"\n<!doctype html>", "application/json", "a page of HTML"),
        (b"oops", "text/html", "a page of HTML"),
        (b"\x00\xff\xfe garbage", "application/json", "is not JSON"),
        (b'{"success": tru', "application/json", "is not JSON"),
        (b"[" * 500 + b"]" * 500, "application/json", "levels of nesting"),
        (b"[" + b"1," * 200_000 + b"1]", "application/json", "more than 100,000 values"),
        (b"[]", "application/json", "not an object"),
        (b'"success"', "application/json", "not an object"),
        (b"{}", "application/json", "neither `success`"),
        (b'{"success": "true"}', "application/json", "neither `success`"),
        (b'{"success": 1}', "application/json", "neither `success`"),
        (b'{"status": "ok", "reply": "x"}', "application/json", "neither `success`"),
        (b'{"result": 1}', "application/json", "neither `success`"),
    ],
)
def test_malformed_answer_names_the_fault(body: bytes, kind: str, named: str) -> None:
    error = raised(body, kind=kind)
    assert isinstance(error, Broken)
    assert error.problem.code == "CONTRACT_VIOLATION"
    assert named in error.problem.message
    assert "com.example.todo:add" in error.problem.message


def test_json_with_html_content_type_is_parsed() -> None:
    assert result_of(reply({"success": True, "content": "x"}, kind="text/html"), TOOL).data == "x"


def test_lone_surrogate_is_replaced() -> None:
    assert result_of(reply(rb'{"success": true, "content": "cut \ud83d"}'), TOOL).data == "cut \ufffd"


# Statuses


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("status", [500, 502, 503, 504, 599])
def test_failed_app_call_is_retryable_and_possibly_executed(status: int) -> None:
    error = raised({"status": "error", "message": "kaput"}, status)
    assert isinstance(error, Lost)
    assert (error.problem.code, error.problem.retryable) == ("HTTP_ERROR", True)
    assert matches(
        "sources", "failed app call is retryable and possibly executed", error.problem.message, status=status
    )


def test_a_failing_query_is_safe_to_try_again() -> None:
    for tool in (SAFE, IDEMPOTENT):
        with pytest.raises(Lost) as raised:
            result_of(reply({}, 500), tool)
        assert matches("sources", "a failing query is safe to try again", str(raised.value))


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429])
def test_an_app_that_refuses_is_not_tried_again(status: int) -> None:
    error = raised(
        {"success": False, "error": {"code": "TOOL_NOT_FOUND", "message": "No such tool."}}, status
    )
    assert isinstance(error, Unavailable)
    assert (error.problem.code, error.problem.retryable) == ("HTTP_ERROR", False)
    assert matches("sources", "an app that refuses is not tried again", error.problem.message, status=status)
    assert error.problem.tool_code == "TOOL_NOT_FOUND"


@pytest.mark.parametrize(
    "body", [b"<html><pre>Error: at /home/app/index.js</pre></html>", b"", b"[]", b"\xff", b"null"]
)
def test_html_error_page_is_not_echoed(body: bytes) -> None:
    message = raised(body, 400, "text/html").problem.message
    assert matches("sources", "html error page is not echoed", message)


@pytest.mark.parametrize("status", [300, 301, 302, 307, 308])
def test_a_redirect_is_an_error(status: int) -> None:
    error = raised({"success": True}, status)
    assert (error.problem.code, error.problem.retryable) == ("HTTP_ERROR", False)
    assert matches("sources", "a redirect is an error", error.problem.message, status=status)


# The way there and back


def test_unsent_call_is_retryable() -> None:
    error = error_of(NoConnection("Connection refused"), TOOL)
    assert isinstance(error, Unavailable)
    assert (error.problem.code, error.problem.retryable) == ("NETWORK_ERROR", True)


def test_an_address_that_may_not_be_used_is_not_named() -> None:
    error = error_of(UrlForbidden("the address is refused: 10.0.0.7 is private"), TOOL)
    assert isinstance(error, Unavailable)
    assert (error.problem.code, error.problem.stage) == ("APP_NOT_AVAILABLE", "webhook")
    assert not error.problem.retryable
    assert "10.0.0.7" not in error.problem.message


@pytest.mark.parametrize("fault", [ConnectionClosed("closed"), NotHttp("babble")])
def test_sent_call_without_answer_has_unknown_outcome(fault: Exception) -> None:
    lost = error_of(fault, TOOL)
    assert isinstance(lost, Lost)
    assert (lost.problem.code, lost.problem.retryable) == ("OUTCOME_UNKNOWN", False)
    for tool in (SAFE, IDEMPOTENT):
        again = error_of(fault, tool)
        assert isinstance(again, Lost)
        assert (again.problem.code, again.problem.retryable) == ("NETWORK_ERROR", True)


def test_an_answer_over_the_limit() -> None:
    error = error_of(PostResponseTooLarge("the answer has more than 100 bytes"), TOOL)
    assert isinstance(error, Broken)
    assert error.problem.code == "RESULT_TOO_LARGE"


# Anything


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
errors = st.dictionaries(st.sampled_from(["code", "message", "retryable"]), anything)
wishes = st.dictionaries(st.sampled_from(["suppressVoiceResponse", "suggestedFollowUps"]), anything)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "success": st.booleans() | anything,
        "status": st.sampled_from(["success", "error"]) | anything,
        "content": anything,
        "data": anything,
        "reply": anything,
        "message": anything,
        "error": errors | anything,
        "mentraExtensions": wishes | anything,
        "agentHints": st.dictionaries(st.sampled_from(["confidence", "warnings", "odd"]), anything)
        | anything,
    },
)
statuses = st.sampled_from([200, 201, 204, 301, 400, 404, 500, 503])


def _survives(answer: PostResponse) -> None:
    with suppress(ToolcribError):
        result = result_of(answer, TOOL)
        as_json(result)
        as_mcp(result)


@given(bodies | anything, statuses)
def test_any_json_is_a_result_or_an_error_of_ours(body: object, status: int) -> None:
    _survives(reply(body, status))


@given(st.binary(), statuses, st.sampled_from(["", "text/html", "application/json"]))
@example(b'{"success":true,"content":1e400}', 200, "")
@example(b'{"success":true,"content":"\\ud800"}', 200, "")
@example(b'{"success":true,"content":99999999999999999999999}', 200, "")
def test_any_bytes_are_a_result_or_an_error_of_ours(body: bytes, status: int, kind: str) -> None:
    _survives(PostResponse(status, kind, body))
