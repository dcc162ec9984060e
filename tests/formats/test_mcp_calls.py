"""MCP as a provider's format: a request or its params in, a response or a bare result out."""

import pytest

from toolcrib.errors import Refused
from toolcrib.formats.mcp import McpFormat
from toolcrib.interfaces import ProviderCall, ProviderResult
from toolcrib.model import Ask, JsonObject, Result

pytestmark = pytest.mark.requirement("F2")

MCP = McpFormat()


def request(**more: object) -> JsonObject:
    params = {"name": "look", "arguments": {"n": 1}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params, **more}


@pytest.mark.parametrize("id", [7, "7", 0, "", "a-1"])
def test_response_has_the_id_of_its_request(id: str | int) -> None:
    (call,) = MCP.calls(request(id=id))
    assert (call.id, call.name, call.arguments) == (str(id), "look", {"n": 1})
    (reply,) = MCP.results([ProviderResult(call=call, result=Result(data={"n": 1}, message="One."))])
    assert (reply["jsonrpc"], reply["id"], type(reply["id"])) == ("2.0", id, type(id))
    assert reply["result"]["structuredContent"] == {"n": 1}


def test_bare_params_get_a_bare_result() -> None:
    (call,) = MCP.calls({"name": "look", "_meta": {"progressToken": 1}})
    assert call == ProviderCall(id="", name="look")
    (reply,) = MCP.results([ProviderResult(call=call, result=Result(data="words", message="Words."))])
    assert (reply["content"], reply["isError"]) == ([{"type": "text", "text": "words"}], False)


def test_question_is_returned_as_text() -> None:
    ask = Result(ask=Ask(questions={"sure": {}}), message="Are you sure?")
    (reply,) = MCP.results([ProviderResult(call=ProviderCall(id="", name="look"), result=ask)])
    assert reply["content"] == [{"type": "text", "text": "Are you sure?"}]


@pytest.mark.parametrize("method", ["tools/list", "ping", "notifications/initialized"])
def test_other_messages_are_no_calls(method: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method}
    assert (MCP.calls(message), MCP.cancelled(message)) == ((), ())


@pytest.mark.parametrize("id", [7, "7"])
def test_a_cancellation_names_the_request(id: str | int) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
    assert (MCP.cancelled(message), MCP.calls(message)) == (("7",), ())


@pytest.mark.parametrize(
    "message, path",
    [
        (request(id=None), "message.id"),
        (request(id=True), "message.id"),
        (request(params=None), "message.params"),
        (request(params={"name": ""}), "message.params.name"),
        ({"arguments": {}}, "message.name"),
    ],
)
def test_faults_have_their_path(message: JsonObject, path: str) -> None:
    with pytest.raises(Refused) as refused:
        MCP.calls(message)
    assert (refused.value.problem.code, refused.value.problem.path) == ("INVALID_REQUEST", path)


def test_a_cancellation_without_an_id_is_refused() -> None:
    with pytest.raises(Refused, match="requestId"):
        MCP.cancelled({"method": "notifications/cancelled", "params": {}})
