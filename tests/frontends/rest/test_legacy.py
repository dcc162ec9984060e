"""The old routes: the old shapes, the one executor behind them, and a date on every answer."""

import json
from typing import Any

import pytest

from tests.frontends.rest.app_setup import NOTES, TOOL, install_for_user, register
from tests.gateways import InProcessGateway, open_gateway
from toolcrib.frontends.rest.legacy import SILENT_REPLY, legacy_response
from toolcrib.model import Ask, Result, Voice

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D12")]

APP_TOOLS, USER_TOOLS = f"/api/tools/apps/{NOTES}/tools", "/api/tools/users/ann/tools"
CALL = f"/api/tools/apps/{NOTES}/tool"
OLD: dict[str, Any] = {
    "id": "add",
    "description": "Writes a note down.",
    "activationPhrases": ["notiere"],
    "parameters": {
        "text": {"type": "string", "description": "What to write.", "required": True},
        "times": {"type": "number", "description": "How often.", "enum": [1, 2], "required": False},
    },
}


FAILING: list[tuple[Any, int, str]] = [
    ({"toolId": "add", "toolParameters": {"text": "x"}, "userId": "ann"}, 503, "APP_NOT_AVAILABLE"),
    ({"toolId": "add", "toolParameters": {}, "userId": "ann", "more": 1}, 400, "INVALID_ARGUMENTS"),
    ({"toolId": "nothing", "userId": "ann"}, 404, "TOOL_NOT_FOUND"),
    ({"toolId": "add", "userId": "bob"}, 401, "NO_SESSION"),
    ({"toolId": "add"}, 400, "INVALID_REQUEST"),
    ({"userId": "ann"}, 400, "INVALID_REQUEST"),
    ({"toolId": "add", "toolParameters": [], "userId": "ann"}, 400, "INVALID_REQUEST"),
    ([], 400, "INVALID_REQUEST"),
]


async def test_tools_in_the_old_shape(gateway: InProcessGateway) -> None:
    await register(gateway)
    await install_for_user(gateway, language="de")
    listed = await gateway.request("GET", APP_TOOLS)
    assert listed.json == [{**OLD, "activationPhrases": ["note"]}]
    assert listed.headers["deprecation"].startswith("@")
    assert int(listed.headers["deprecation"][1:]) > 1_700_000_000
    assert listed.headers["link"] == f'</api/apps/{NOTES}/tools>; rel="successor-version"'
    theirs = await gateway.request("GET", USER_TOOLS)
    assert theirs.json == [{**OLD, "appPackageName": NOTES}]
    assert theirs.headers["link"] == '</api/tools>; rel="successor-version"'
    await gateway.request("PUT", f"/api/users/ann/tools/{NOTES}:add/disabled")
    assert (await gateway.request("GET", USER_TOOLS)).json == []


async def test_a_definition_of_the_old_shape_comes_back_as_it_was_sent(gateway: InProcessGateway) -> None:
    await register(gateway)
    await gateway.request("POST", f"/api/apps/{NOTES}/tools", body={"tools": [OLD]})
    assert (await gateway.request("GET", APP_TOOLS)).json == [OLD]


async def test_legacy_call_runs_the_pipeline(gateway: InProcessGateway) -> None:
    await register(gateway, publicUrl=None)
    await install_for_user(gateway)
    for body, status, code in FAILING:
        reply = await gateway.request("POST", CALL, body=body)
        assert (reply.status, reply.json["status"], reply.code) == (status, "error", code), body
        assert reply.json["message"]
        assert reply.headers["link"] == '</api/tools/execute>; rel="successor-version"'
        assert "deprecation" in reply.headers
    calls = (await gateway.request("GET", "/api/calls")).json["calls"]
    assert {(each["tool"], each["user"]) for each in calls} == {(f"{NOTES}:add", "ann")}


def body_of(result: Result) -> Any:
    answer = legacy_response(result)
    assert answer.status == 200
    return json.loads(answer.body)


async def test_replies() -> None:
    text = ({"type": "text", "text": "done"},)
    assert body_of(Result(content=text)) == {"status": "success", "reply": "done"}
    assert body_of(Result(data={"n": 1})) == {"status": "success", "reply": {"n": 1}}
    assert body_of(Result()) == {"status": "success", "reply": None}
    assert body_of(Result(content=text, voice=Voice(suppress=True)))["reply"] == SILENT_REPLY
    assert body_of(Result(ask=Ask(questions={})))["status"] == "error"


async def test_acting_for_another_takes_a_key_that_may(gateway: InProcessGateway) -> None:
    await register(gateway)
    await install_for_user(gateway)
    plain, anns = await gateway.key("plain"), await gateway.key("anns", user="ann")
    body = {"toolId": "nothing", "userId": "ann"}
    assert (await gateway.request("POST", CALL, body=body, key=plain)).code == "SCOPE_DENIED"
    assert (await gateway.request("POST", CALL, body=body, key=anns)).code == "TOOL_NOT_FOUND"
    assert (
        await gateway.request("POST", CALL, body={"toolId": "nothing"}, key=anns)
    ).code == "TOOL_NOT_FOUND"
    assert (
        await gateway.request("POST", CALL, body={**body, "userId": "bob"}, key=anns)
    ).code == "SCOPE_DENIED"


async def test_switched_off_they_are_not_there() -> None:
    async with open_gateway("legacy: false") as gateway:
        await register(gateway)
        for method, path in (("GET", APP_TOOLS), ("GET", USER_TOOLS), ("POST", CALL)):
            reply = await gateway.request(method, path, body={} if method == "POST" else None)
            assert (reply.status, reply.code) == (404, "NOT_FOUND")
        assert (await gateway.request("GET", f"/api/apps/{NOTES}/tools")).json["tools"] == [TOOL]
