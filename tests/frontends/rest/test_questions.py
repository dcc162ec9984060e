"""A tool that asks, over REST: the response is the question, and the call is repeated with the answer."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import jsonschema_rs
import orjson
import pytest

from tests.gateways import ADMIN, AsgiConnection, InProcessGateway, Reply, open_gateway, scope
from tests.waiting import until
from toolcrib.model import Ask, Call, Result
from toolcrib.testing import FakeSource, a_tool

pytestmark = pytest.mark.anyio

FORMS: dict[str, Any] = {"elicitation": {}}
YES = {"action": "accept", "content": {"seat": "4A"}}
FORM: dict[str, Any] = {"message": "Which seat?", "requestedSchema": {"type": "object", "properties": {}}}
QUESTION: dict[str, Any] = {"method": "elicitation/create", "params": FORM}


async def answer(call: Call) -> Result:
    """Ask in either way, if supported."""
    if call.arguments.get("modern"):
        if call.state != "kept":
            return Result(ask=Ask(questions={"seat": QUESTION}, state="kept"))
        return Result(data=dict(call.answers))
    if call.channel is None:
        return Result(data="nobody to ask")
    return Result(data=dict(await call.channel.ask("elicitation/create", FORM)))


@asynccontextmanager
async def desk() -> AsyncGenerator[InProcessGateway]:
    """A gateway with a tool that asks."""
    async with open_gateway() as opened:
        supervisor = opened.runtime.console.supervisor
        supervisor.add(FakeSource([a_tool("desk:book", family="mcp")], answer))
        await until(lambda: supervisor.is_up("desk"))
        yield opened


async def book(gateway: InProcessGateway, key: str = ADMIN, **more: Any) -> Reply:
    body: dict[str, Any] = {"name": "book", "arguments": {}, **more}
    return await gateway.request("POST", "/api/tools/execute", body=body, key=key)


async def parked(gateway: InProcessGateway) -> str:
    metrics = (await gateway.request("GET", "/metrics")).body.decode()
    return metrics.partition("\ntoolcrib_parked_calls ")[2].partition("\n")[0]


async def test_call_with_question_is_continued() -> None:
    async with desk() as gateway:
        asked = await book(gateway, capabilities=FORMS)
        required = asked.json["inputRequired"]
        assert (asked.status, asked.json["success"], asked.json["status"]) == (200, True, "success")
        assert (required["questions"], asked.json["message"]) == ({"q1": QUESTION}, "Which seat?")
        assert asked.json["content"] == "Which seat?"
        assert not {"data", "error"} & set(asked.json)
        described = (await gateway.request("GET", "/openapi.json")).json["components"]
        shape = {"$ref": "#/components/schemas/Result", "components": described}
        jsonschema_rs.validate(shape, asked.json)
        assert await parked(gateway) == "1"
        done = await book(gateway, answers={"q1": YES}, state=required["state"])
        assert (done.json["data"], "inputRequired" in done.json) == (YES, False)
        assert await parked(gateway) == "0"
        calls = (await gateway.request("GET", "/api/calls?tool=desk:book")).json["calls"]
        assert [each["outcome"] for each in calls] == ["success"]


async def test_client_without_capabilities_is_not_asked() -> None:
    async with desk() as gateway:
        assert (await book(gateway)).json["data"] == "nobody to ask"
        assert (await book(gateway, capabilities=None)).json["data"] == "nobody to ask"


async def test_a_state_of_no_use_is_refused() -> None:
    async with desk() as gateway:
        state = (await book(gateway, capabilities=FORMS)).json["inputRequired"]["state"]
        key = await gateway.key("other")
        refused = [
            await book(gateway, key, answers={"q1": YES}, state=state),
            await book(gateway, answers={"q1": YES}, state=state, arguments={"day": 2}),
            await book(gateway, answers={"q1": YES}, state=f"{state[:-1]}{'A' if state[-1] != 'A' else 'B'}"),
            await book(gateway, answers={"q1": YES}, state="x" * 100_000),
        ]
        assert {(each.status, each.code, each.json["error"]["path"]) for each in refused} == {
            (400, "INVALID_REQUEST", "state")
        }
        wrong = await book(gateway, answers={"q1": "4A"}, state=state)
        assert (wrong.code, wrong.json["error"]["path"]) == ("INVALID_REQUEST", "answers.q1")


async def test_a_question_ends_a_stream_of_events() -> None:
    async with desk() as gateway:
        body = orjson.dumps({"name": "book", "capabilities": FORMS})
        headers = [(b"host", b"127.0.0.1:6740"), (b"accept", b"text/event-stream")]
        headers += [(b"authorization", f"Bearer {await gateway.key('streams')}".encode())]
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        client = AsgiConnection(body)
        await gateway.server(scope("POST", "/api/tools/execute", headers), client.receive, client.send)
        said = client.reply().body.partition(b"data: ")
        assert said[0] == b"event: result\n"
        assert list(orjson.loads(said[2])["inputRequired"]["questions"]) == ["q1"]
        assert await parked(gateway) == "1"


async def test_source_state_is_valid_on_replicas_and_after_restart() -> None:
    async with desk() as gateway:
        asked = (await book(gateway, arguments={"modern": True})).json["inputRequired"]
        assert list(asked["questions"]) == ["seat"]
        assert asked["state"] != "kept"
    async with desk() as gateway:
        done = await book(gateway, arguments={"modern": True}, answers={"seat": YES}, state=asked["state"])
        assert done.json["data"] == {"seat": YES}
