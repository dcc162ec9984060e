"""A server as a source: it comes up with its tools, is called over one way, and dies in plain words."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.simulated_clock import BACKEND
from tests.sources.mcp.scripted_connection import RecordingLink, ScriptedConnection, legacy, listed, modern
from tests.texts import matches
from tests.waiting import until
from toolcrib.errors import Failed, Lost, Refused, ToolcribError, Unavailable
from toolcrib.interfaces import Source
from toolcrib.model import Call, Origin, Progress, Result
from toolcrib.sources.mcp import source as module
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    HttpStatusError,
    JsonRpcError,
    McpSettings,
    Notify,
    NotSent,
    ServerError,
    ToolSettings,
)
from toolcrib.sources.mcp.source import McpSource
from toolcrib.testing import a_call, a_tool

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return BACKEND


HELLO = {"content": [{"type": "text", "text": "hello"}]}
UUID = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0ff"
TRACED = {"id": "11111111-2222-4333-8444-555555555555", "origin": Origin(trace_id=UUID)}


def redact(text: str) -> str:
    return text.replace("s3cret", "***")


def of(server: ScriptedConnection, **settings: Any) -> McpSource:
    return McpSource(McpSettings(id="fs", **settings), server.dial)


def old(**script: Any) -> ScriptedConnection:
    return ScriptedConnection(
        **{"initialize": legacy(), "tools__list": listed("read"), "tools__call": HELLO, **script}
    )


def new(**script: Any) -> ScriptedConnection:
    return ScriptedConnection(
        **{"server__discover": modern(), "tools__list": listed("read"), "tools__call": HELLO, **script}
    )


@asynccontextmanager
async def running(source: McpSource) -> AsyncGenerator[RecordingLink]:
    link = RecordingLink()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.run, link)
        await until(lambda: bool(link.offers))
        yield link
        tasks.cancel_scope.cancel()


def read(**fields: Any) -> Call:
    return a_call(a_tool("fs:read", family="mcp"), **fields)


async def death(source: McpSource, link: RecordingLink | None = None) -> Exception:
    with pytest.raises(Exception) as caught, anyio.fail_after(5):  # noqa: PT011 - the caller looks at it
        await source.run(link or RecordingLink())
    return caught.value


def test_it_is_a_source() -> None:
    source: Source = of(old(), timeout=7.0)
    assert (source.id, source.family, source.timeout, source.mortal) == ("fs", "mcp", 7.0, True)
    assert source.details() == {"transport": "stdio"}


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("server", [old(), new()])
async def test_it_comes_up_with_its_tools_and_is_called(server: ScriptedConnection) -> None:
    source = of(server)
    async with running(source) as link:
        assert link.names() == ["fs:read"]
        assert link.offers[0].tools[0].version == "3.1"
        result = await source.call(read(arguments={"path": "x"}))
        assert result == Result(data="hello", content=(HELLO["content"][0],), structured=False)
        await source.check()
    assert server.closed == server.dials == 1
    assert not link.downs


async def test_details_for_operators() -> None:
    server = old(tools__list={"tools": [*listed("read")["tools"], 7]})
    source = of(server, tools={"read": ToolSettings(), "gone": ToolSettings()})
    expected = {
        "transport": "stdio",
        "era": "legacy",
        "revision": "2025-06-18",
        "server_name": "scripted",
        "server_version": "3.1",
        "discovered_tools": 2,
        "withheld_tools": 1,
        "missing_tools": ("gone",),
        "pid": 4711,
    }
    async with running(source):
        assert source.details() == expected
    assert source.details() == expected


@pytest.mark.requirement("B7")
async def test_unknown_tool_in_config_warns_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = old(tools__list=[listed("read"), listed("read", "new"), listed("other")])
    source = of(server, tools={"read": ToolSettings(), "gone": ToolSettings()})
    async with running(source) as link:
        for count in (2, 3):
            server.heard("notifications/tools/list_changed", {})
            await until(lambda count=count: len(link.offers) == count)
    missing = [record.getMessage() for record in caplog.records if "the config names" in record.getMessage()]
    assert missing == [f"fs has no tool {name!r}, although the config names it" for name in ("gone", "read")]


async def test_a_tool_that_is_there_but_withheld_is_not_missing() -> None:
    source = of(
        old(tools__list={"tools": [{"name": "read", "description": 7}]}), tools={"read": ToolSettings()}
    )
    async with running(source):
        assert source.details()["missing_tools"] == ()


async def test_a_list_that_was_cut_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    endless = {**listed("read"), "nextCursor": "again"}
    server = old(tools__list=[endless, endless, {**listed("b"), "nextCursor": "again"}])
    async with running(of(server)) as link:
        server.heard("notifications/tools/list_changed", {})
        await until(lambda: len(link.offers) == 2)
    assert caplog.text.count("was not read to the end") == 1


async def test_the_same_list_is_not_offered_again() -> None:
    server = old(tools__list=[listed("read"), listed("read"), listed("read", "write")])
    async with running(of(server)) as link:
        server.heard("notifications/tools/list_changed", {})
        await until(lambda: server.count("tools/list") == 2)
        server.heard("notifications/tools/list_changed", {})
        await until(lambda: len(link.offers) == 2)
        assert server.count("tools/list") == 3
        assert link.names() == ["fs:read", "fs:write"]


async def test_remembered_definitions_make_the_same_offer() -> None:
    source = of(old(), tools={"read": ToolSettings(description="Ours.")})
    async with running(source) as link:
        offered = link.offers[0]
    remembered = source.offer_of([*offered.definitions.values()])
    assert [tool.name for tool in remembered.tools] == ["fs:read"]
    assert remembered.tools[0].description == "Ours."
    assert remembered.definitions == offered.definitions


# Calls


@pytest.mark.parametrize(
    "fields, meta",
    [
        ({}, None),
        (TRACED, {"traceparent": "00-0f1e2d3c4b5a49788695a4b3c2d1e0ff-8444555555555555-01"}),
        ({**TRACED, "origin": Origin(trace_id="00000000-0000-0000-0000-000000000000")}, None),
        ({**TRACED, "id": 'x"},"arguments":{'}, None),
    ],
)
async def test_legacy_call_has_required_fields(fields: dict[str, Any], meta: dict[str, str] | None) -> None:
    source = of(server := old())
    async with running(source):
        await source.call(read(arguments={"n": [1, "é"]}, **fields))
    expected = {"name": "read", "arguments": {"n": [1, "é"]}}
    assert server.asked[-1] == ("tools/call", expected if meta is None else {**expected, "_meta": meta})
    assert server.sent[-1] == {"name": "read", "headers": None, "callbacks": None}


async def test_modern_call_has_envelope_without_capabilities() -> None:
    source = of(server := new())
    async with running(source):
        await source.call(read())
        await source.call(read(**TRACED))
    plain, traced = server.asked[-2][1]["_meta"], server.asked[-1][1]["_meta"]
    assert plain["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert plain["io.modelcontextprotocol/clientCapabilities"] == {}
    assert plain["io.modelcontextprotocol/clientInfo"]["name"] == "toolcrib"
    assert {**plain, "traceparent": traced["traceparent"]} == traced


async def test_header_arguments_of_modern_server_are_sent_as_headers() -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    tools = {"tools": [{"name": "read", "inputSchema": schema}]}
    source = of(server := new(tools__list=tools))
    async with running(source):
        await source.call(read(arguments={"region": "eu"}))
    assert server.sent[-1]["headers"] == {"Mcp-Param-Region": "eu"}
    source = of(server := old(tools__list=tools))
    async with running(source):
        await source.call(read(arguments={"region": "eu"}))
    assert server.sent[-1]["headers"] is None


async def test_requested_progress_is_delivered() -> None:
    async def report(_progress: Progress) -> None:
        pass

    source = of(server := old())
    async with running(source):
        await source.call(read(report=report))
    assert server.sent[-1]["callbacks"].report is report


async def test_arguments_that_are_not_json_are_refused() -> None:
    source = of(server := old())
    async with running(source):
        with pytest.raises(Refused) as raised:
            await source.call(read(arguments={"n": 2**70}))
        assert matches("sources", "arguments that are not json are refused", str(raised.value))
    assert server.count("tools/call") == 0


async def test_a_tool_the_server_no_longer_lists_is_not_called() -> None:
    source = of(server := old())
    async with running(source):
        with pytest.raises(Refused) as raised:
            await source.call(a_call(a_tool("fs:write")))
        assert matches("sources", "a tool the server no longer lists is not called", str(raised.value))
    assert server.count("tools/call") == 0


async def test_nothing_is_called_or_checked_before_or_after_a_run() -> None:
    source = of(old())
    for _ in range(2):
        for doing in (source.call(read()), source.check()):
            with pytest.raises(Unavailable) as raised:
                await doing
            assert matches("sources", "nothing is called or checked before or after a run", str(raised.value))
        async with running(source):
            pass


@pytest.mark.parametrize(
    "fault, kind, code",
    [
        (NotSent("refused"), Unavailable, "NETWORK_ERROR"),
        (ConnectionLost("gone"), Lost, "OUTCOME_UNKNOWN"),
        (JsonRpcError(-32602, "bad"), Failed, "TOOL_FAILED"),
    ],
)
async def test_faults_map_to_error_kinds(fault: ServerError, kind: type[ToolcribError], code: str) -> None:
    source = of(old(tools__call=fault))
    async with running(source):
        with pytest.raises(kind) as caught:
            await source.call(read())
    assert caught.value.problem.code == code


@pytest.mark.parametrize(
    "fault", [NotSent("refused"), ConnectionLost("gone"), HttpStatusError(404, "no session")]
)
async def test_network_error_triggers_probe_of_web_server(fault: ServerError) -> None:
    server = old(tools__call=fault, tools__list=[listed("read"), NotSent("no route")])
    source, link, ended = of(server, transport="http"), RecordingLink(), list[Exception]()

    async def run() -> None:
        ended.append(await death(source, link))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await until(lambda: bool(link.offers))
        with pytest.raises(ToolcribError):
            await source.call(read())
        await until(lambda: bool(ended))
    assert str(ended[0]) == link.downs[0]
    assert link.downs[0].endswith(": no route")


async def test_check_sends_a_real_request() -> None:
    server = old(tools__list=[listed("read"), JsonRpcError(-1, "not with s3cret"), None])
    source = of(server, redact=redact)
    async with running(source):
        with pytest.raises(ConnectionError) as raised:
            await source.check()
        assert matches("sources", "check sends a real request", str(raised.value))


@pytest.mark.requirement("C4")
async def test_a_check_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE_TIMEOUT_SECONDS", 0.01)
    source = of(old(tools__list=[listed("read"), None]))
    async with running(source):
        with pytest.raises(TimeoutError) as raised:
            await source.check()
        assert matches("sources", "a check has a time limit", str(raised.value))


# Death


async def test_loss_is_reported_before_cleanup() -> None:
    server, link = old(), RecordingLink()
    downs_at_close: list[list[str]] = []

    @asynccontextmanager
    async def dial(heard: Notify) -> AsyncGenerator[ScriptedConnection]:
        async with server.dial(heard) as connection:
            server.lose("it exited with s3cret")
            try:
                yield connection
            finally:
                downs_at_close.append([*link.downs])

    error = await death(McpSource(McpSettings(id="fs", redact=redact), dial), link)
    assert type(error) is ConnectionError
    assert str(error) == "it exited with ***"
    assert downs_at_close == [["it exited with ***"]]
    assert server.closed == 1


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    "script, undone",
    [({"initialize": None}, "answer our greeting"), ({"tools__list": None}, "list its tools")],
)
async def test_start_timeout_names_the_missing_stage(script: dict[str, Any], undone: str) -> None:
    server = old(**script)
    error = await death(of(server, start_timeout=0.05))
    assert type(error) is TimeoutError
    assert matches("sources", "start timeout names the missing stage", str(error), undone=undone)
    assert server.closed == 1


@pytest.mark.requirement("C4")
async def test_the_time_limit_of_a_start_holds_for_dialling_too() -> None:
    @asynccontextmanager
    async def dial(_heard: Notify) -> AsyncGenerator[ScriptedConnection]:
        await anyio.sleep_forever()
        yield ScriptedConnection()

    error = await death(McpSource(McpSettings(id="fs", start_timeout=0.01), dial))
    assert matches("sources", "the time limit of a start holds for dialling too", str(error))


async def test_the_time_limit_of_a_start_is_over_when_the_server_is_up() -> None:
    async with running(of(old(), start_timeout=0.05)) as link:
        await anyio.sleep(0.1)
        assert not link.downs


@pytest.mark.parametrize(
    "script, why",
    [
        ({"initialize": JsonRpcError(-1, "a s3cret is wrong")}, r"a \*\*\* is wrong"),
        ({"server__discover": NotSent("no route")}, "no route"),
        ({"tools__list": ConnectionLost("it exited")}, "it exited"),
        ({"initialize": legacy("1999-01-01")}, "1999-01-01"),
    ],
)
async def test_failed_start_raises_one_plain_error(script: dict[str, Any], why: str) -> None:
    link = RecordingLink()
    source = of(old(**script), redact=redact)
    with pytest.raises(ConnectionError, match=why):
        await source.run(link)
    assert not link.offers


async def test_exception_group_of_transport_is_unwrapped() -> None:
    @asynccontextmanager
    async def dial(_heard: Notify) -> AsyncGenerator[ScriptedConnection]:
        async with anyio.create_task_group():
            raise FileNotFoundError("there is no program npx")
        yield ScriptedConnection()

    error = await death(McpSource(McpSettings(id="fs"), dial))
    assert type(error) is FileNotFoundError


async def test_the_next_run_remembers_how_the_server_speaks() -> None:
    server = old()
    source = of(server)
    async with running(source):
        pass
    server.asked.clear()
    async with running(source):
        pass
    assert [method for method, _ in server.asked][:2] == ["initialize", "tools/list"]


async def test_sse_server_gets_the_handshake() -> None:
    async with running(of(server := old(), transport="sse")):
        assert server.count("server/discover") == 0
