"""Over a socket: lists of messages, streams that replace each other, connections that break."""

from typing import Any

import anyio
import httpx2
import pytest

from tests.frontends.mcp.mcp_gateway import MODERN, serve_mcp
from tests.frontends.mcp.messages import ENVELOPE, LEGACY_HEADERS, call, message, modern_headers, open_session

pytestmark = pytest.mark.anyio


async def introduced(http: httpx2.AsyncClient, url: str, revision: str) -> dict[str, str]:
    client = {"name": "raw", "version": "1"}
    opening = message("initialize", protocolVersion=revision, capabilities={}, clientInfo=client)
    response = await http.post(url, json=opening, headers=LEGACY_HEADERS)
    assert response.json()["result"]["protocolVersion"] == revision
    return {**LEGACY_HEADERS, "mcp-session-id": response.headers["mcp-session-id"]}


async def test_one_revision_takes_several_messages_at_once() -> None:
    ready: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    both: list[Any] = [
        message("tools/call", 1, name="say_hello"),
        ready,
        message("nothing/here", 2),
        message("ping", 3),
    ]
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        headers = await introduced(http, gateway.url(), "2025-03-26")
        answers = (await http.post(gateway.url(), json=both, headers=headers)).json()
        found = {answer["id"]: answer for answer in answers}
        assert found[1]["result"]["content"][0]["text"] == "hello"
        assert found[2]["error"]["code"] == -32601
        assert found[3]["result"] == {}
        assert (await http.post(gateway.url(), json=[ready], headers=headers)).status_code == 202
        for wrong in ([], [5], [message("ping")] * 101):
            refused = await http.post(gateway.url(), json=wrong, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
        for revision in ("2024-11-05", "2025-06-18", "2025-11-25"):
            headers = await introduced(http, gateway.url(), revision)
            assert (await http.post(gateway.url(), json=both, headers=headers)).status_code == 400


async def test_new_session_stream_replaces_the_old_one() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http, anyio.create_task_group() as tasks:
        session = await open_session(http, gateway.url())
        headers = {"accept": "text/event-stream", "mcp-session-id": session}
        ended = anyio.Event()

        async def hear() -> None:
            async with http.stream("GET", gateway.url(), headers=headers) as stream:
                opened.set()
                async for _ in stream.aiter_bytes():
                    pass
            ended.set()

        opened = anyio.Event()
        tasks.start_soon(hear)
        await opened.wait()
        async with http.stream("GET", gateway.url(), headers=headers) as stream:
            with anyio.fail_after(10):
                await ended.wait()
            gateway.offer("tools:echo")
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    assert "notifications/tools/list_changed" in line
                    break
        assert (await http.delete(gateway.url(), headers=headers)).status_code == 200
        assert (await http.get(gateway.url(), headers=headers)).status_code == 404


async def test_only_a_modern_call_ends_with_its_connection() -> None:
    async with serve_mcp() as gateway:
        events = gateway.events
        async with httpx2.AsyncClient() as http:
            session = await open_session(http, gateway.url())
        for modern in (False, True):
            events.started, events.cancelled = anyio.Event(), anyio.Event()

            async def ask(http: httpx2.AsyncClient, modern: bool = modern) -> None:
                if not modern:
                    await call(http, gateway.url(), session, "wait_forever")
                    return
                sent = message("tools/call", 7, name="wait_forever", _meta=ENVELOPE)
                headers = modern_headers("tools/call", "wait_forever")
                await http.post(gateway.url(), json=sent, headers=headers)

            async with anyio.create_task_group() as tasks, httpx2.AsyncClient() as http:
                tasks.start_soon(ask, http)
                await events.started.wait()
                tasks.cancel_scope.cancel()
            if modern:
                with anyio.fail_after(10):
                    await events.cancelled.wait()
                continue
            async with httpx2.AsyncClient() as http:
                headers = {**LEGACY_HEADERS, "mcp-session-id": session}
                assert (
                    await http.post(gateway.url(), json=message("ping", 2), headers=headers)
                ).status_code == 200
                assert not events.cancelled.is_set()
                back = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
                assert (await http.post(gateway.url(), json=back, headers=headers)).status_code == 202
                with anyio.fail_after(10):
                    await events.cancelled.wait()


async def test_a_request_that_is_taken_back_ends_without_an_answer() -> None:
    found: list[httpx2.Response] = []
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http, anyio.create_task_group() as tasks:
        headers = await introduced(http, gateway.url(), "2025-11-25")

        async def ask() -> None:
            sent = message("tools/call", "seven", name="wait_forever")
            found.append(await http.post(gateway.url(), json=sent, headers=headers))

        tasks.start_soon(ask)
        await gateway.events.started.wait()
        back = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "seven"}}
        await http.post(gateway.url(), json=back, headers=headers)
        with anyio.fail_after(10):
            await gateway.events.cancelled.wait()
    assert (found[0].status_code, found[0].headers["content-type"], found[0].content) == (
        200,
        "text/event-stream",
        b"",
    )


async def test_replica_continues_session_without_its_questions() -> None:
    async with serve_mcp() as first, serve_mcp() as second, httpx2.AsyncClient() as http:
        session = await open_session(http, first.url())
        assert (await call(http, second.url(), session, "say_hello")).status_code == 200
        headers = {**LEGACY_HEADERS, "mcp-session-id": session}
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": "crib-1", "result": {}}
        assert (await http.post(first.url(), json=answer, headers=headers)).status_code == 202
        assert (await http.post(second.url(), json=answer, headers=headers)).status_code == 404


async def test_accept_header() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        session = await open_session(http, gateway.url())
        only_json = {"accept": "application/json", "mcp-session-id": session}
        sent = message("tools/call", name="take_steps", _meta={"progressToken": 1})
        plain = await http.post(gateway.url(), json=sent, headers=only_json)
        assert plain.json()["result"]["content"][0]["text"] == "done"
        assert (await http.get(gateway.url(), headers=only_json)).status_code == 406
        modern = {**modern_headers("tools/list"), "accept": "application/json"}
        refused = await http.post(gateway.url(), json=message("tools/list", _meta=ENVELOPE), headers=modern)
        assert refused.status_code == 406
        for method in ("GET", "DELETE"):
            headers = {"mcp-protocol-version": MODERN, "mcp-session-id": session}
            response = await http.request(method, gateway.url(), headers=headers)
            assert (response.status_code, response.headers["allow"]) == (405, "POST")
