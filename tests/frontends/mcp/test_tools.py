"""Real clients of both eras list and call tools over HTTP, and see what went wrong in words they can use."""

from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, CallToolResult, TextContent

from tests.frontends.mcp.mcp_gateway import CALLERS, ERAS, serve_mcp
from tests.hint_fields import HINT_FIELD_SET
from tests.texts import matches
from toolcrib.frontends.mcp import tool_list
from toolcrib.testing import a_tool
from toolcrib.version import VERSION

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


def meta_of(result: CallToolResult) -> dict[str, Any]:
    assert result.meta is not None
    return dict(result.meta)


@pytest.mark.requirement("A2")
async def test_list_has_permitted_tools_under_safe_names(era: str) -> None:
    async with (
        serve_mcp() as gateway,
        gateway.client(era, "bob") as bob,
        gateway.client(era, "alice") as alice,
    ):
        seen = {tool.name: tool for tool in (await bob.list_tools()).tools}
        assert {"echo", "say_hello", "count_up", "drop_all", "get_datetime"} <= set(seen)
        assert "read_secret" not in seen
        assert "read_secret" in {tool.name for tool in (await alice.list_tools()).tools}
        assert seen["echo"].description == "Say a text again."
        assert seen["echo"].input_schema["properties"]["text"]["description"] == "What to say again."
        assert seen["echo"].output_schema is not None


async def test_annotations_describe_the_tool(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client:
        seen = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        reading, dropping = seen["say_hello"], seen["drop_all"]
        assert reading is not None
        assert dropping is not None
        assert (reading.read_only_hint, reading.destructive_hint, reading.idempotent_hint) == (
            True,
            False,
            True,
        )
        assert (dropping.read_only_hint, dropping.destructive_hint) == (False, True)


@pytest.mark.requirement("A2")
async def test_a_context_may_choose_flat_names_and_selects_tools(era: str) -> None:
    async with (
        serve_mcp() as gateway,
        gateway.client(era, "carol") as few,
        gateway.client(era, "dave") as flat,
    ):
        assert {tool.name for tool in (await few.list_tools()).tools} == {"echo", "say_hello"}
        names = {tool.name for tool in (await flat.list_tools()).tools}
        assert {"say-hello", "get-datetime"} <= names
        for name in ("say-hello", "say_hello", "tools:say-hello"):
            assert text_of(await flat.call_tool(name)) == "hello"
        with pytest.raises(MCPError) as raised:
            await few.call_tool("count_up", {"to": 1})
        assert matches("mcp", "a context may choose flat names and selects tools", str(raised.value))


async def test_a_flat_name_that_means_another_tool_is_not_used(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era, "dave") as flat:
        hidden = a_tool("tools:hidden", expose_as="taken", hidden=True)
        shadowed = a_tool("tools:taken", expose_as="shadowed")
        shared = a_tool("tools:get_datetime", expose_as="shared")
        gateway.put(hidden, shadowed, shared, a_tool("tools:x-y"), a_tool("tools:é"))
        names = {tool.name for tool in (await flat.list_tools()).tools}
        assert {"x-y", "shadowed", "shared"} <= names
        assert names.isdisjoint({"taken", "é", "hidden"})


@pytest.mark.requirement("A2")
async def test_qualified_names_are_refused(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era, "erin") as client:
        with pytest.raises(MCPError) as caught:
            await client.list_tools()
        assert matches("mcp", "qualified names are refused", str(caught.value))
        assert caught.value.error.code == INVALID_REQUEST


async def test_a_call_carries_structure_hints_and_metadata(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era, "jane") as client:
        result = await client.call_tool("echo", {"text": "hi"})
        assert not result.is_error
        assert result.structured_content == {"text": "hi", "nothing": None}
        assert text_of(result) == '{"text":"hi","nothing":null}'
        meta = meta_of(result)
        assert set(meta["toolcrib/agentHints"]) >= HINT_FIELD_SET
        assert meta["toolcrib/metadata"]["serviceVersion"] == VERSION
        assert meta["toolcrib/message"]
        assert "toolcrib/error" not in meta


async def test_structure_that_is_no_object_is_for_the_modern_era(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client:
        counted = await client.call_tool("count_up", {"to": 3})
        assert text_of(counted) == "[1,2,3]"
        assert counted.structured_content == (None if era == "legacy" else [1, 2, 3])
        said = await client.call_tool("say_hello")
        assert text_of(said) == "hello"


@pytest.mark.requirement("A5")
async def test_an_unknown_tool_is_a_protocol_error_with_near_names(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("say_helo")
        assert matches("mcp", "an unknown tool is a protocol error with near names", str(caught.value))
        error = caught.value.error
        assert error.code == INVALID_PARAMS
        assert error.data["toolcrib/error"]["code"] == "TOOL_NOT_FOUND"
        assert set(error.data["toolcrib/agentHints"]) >= HINT_FIELD_SET


@pytest.mark.requirement("A1")
async def test_a_malformed_name_is_a_protocol_error(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(":x")
        assert caught.value.error.code == INVALID_PARAMS
        assert caught.value.error.data["toolcrib/error"]["code"] == "INVALID_TOOL_NAME"


async def test_wrong_arguments_are_a_result_the_model_can_learn_from(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client:
        result = await client.call_tool("echo", {"text": 5})
        assert result.is_error
        error = meta_of(result)["toolcrib/error"]
        assert (error["code"], error["path"], error["retryable"]) == (
            "INVALID_ARGUMENTS",
            "arguments.text",
            False,
        )
        assert "text" in text_of(result)


async def test_tool_exception_text_is_not_disclosed(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client:
        failed = await client.call_tool("fail_always")
        assert failed.is_error
        assert meta_of(failed)["toolcrib/error"]["code"] == "HANDLER_ERROR"
        assert "passwd" not in failed.model_dump_json()
        refused = await client.call_tool("refuse_always")
        assert meta_of(refused)["toolcrib/error"]["toolCode"] == "CARD_CLOSED"
        assert text_of(refused) == "The card is closed."


async def test_a_missing_permission_is_named_not_hidden(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client:
        result = await client.call_tool("read_secret")
        assert meta_of(result)["toolcrib/error"]["code"] == "PERMISSION_DENIED"
        assert "secrets:read" in text_of(result)


@pytest.mark.requirement("D14")
async def test_requested_progress_always_increases(era: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with serve_mcp() as gateway, gateway.client(era) as client:
        assert text_of(await client.call_tool("take_steps")) == "done"
        assert text_of(await client.call_tool("take_steps", progress_callback=hear)) == "done"
    assert [message for _, _, message in heard] == ["one", "still there", "two"]
    numbers = [done for done, _, _ in heard]
    assert numbers == sorted(set(numbers))
    assert (heard[0], heard[-1]) == ((0.0, 3.0, "one"), (2.0, 3.0, "two"))


async def test_a_cancelled_call_is_cancelled_in_the_tool(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client, anyio.create_task_group() as tasks:

        async def call() -> None:
            await client.call_tool("wait_forever")

        with anyio.fail_after(10):
            tasks.start_soon(call)
            await gateway.events.started.wait()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await gateway.events.cancelled.wait()


@pytest.mark.requirement("E5")
async def test_where_a_call_comes_from_reaches_the_tool(era: str) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    meta: Any = {"traceparent": f"00-{trace}-b7ad6b7169203331-01", "toolcrib/correlationId": "order-7"}
    async with serve_mcp() as gateway, gateway.client(era) as client:
        result = await client.call_tool("echo", {"text": "hi"}, meta=meta)
        context = gateway.events.contexts[0]
        assert context.trace_id.replace("-", "") == trace
        assert meta_of(result)["toolcrib/metadata"]["traceId"] == context.trace_id
        assert meta_of(result)["toolcrib/metadata"]["correlationId"] == context.correlation_id
        assert context.agent_id == "mcp"
        again = await client.call_tool("echo", {"text": "hi"}, meta=meta)
        assert meta_of(again)["toolcrib/metadata"]["correlationId"] == context.correlation_id


async def test_more_than_a_page_of_tools_is_paged(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client:
        many = [a_tool(f"tools:number-{number}") for number in range(2100)]
        gateway.put(*many)
        names: list[str] = []
        sizes: list[int] = []
        cursor: str | None = None
        while cursor is not None or not sizes:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            sizes.append(len(page.tools))
            cursor = page.next_cursor
        assert sizes[:2] == [1000, 1000]
        assert len(set(names)) == len(names) == len(gateway.runtime.gateway.tools(CALLERS["bob"]))
        with pytest.raises(MCPError) as caught:
            await client.list_tools(cursor="7")
        assert matches("mcp", "more than a page of tools is paged", str(caught.value))
        assert caught.value.error.code == INVALID_REQUEST


async def test_definitions_are_kept_up_to_a_number(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_list, "_MIN_CACHED_DEFINITIONS", 1)
    monkeypatch.setattr(tool_list, "_CACHED_DEFINITIONS_PER_TOOL", 0)
    async with serve_mcp() as gateway, gateway.client(era, "carol") as client:
        page = await client.list_tools()
        assert {tool.name for tool in page.tools} == {"echo", "say_hello"}
        assert page.next_cursor is None


async def test_invalid_annotation_alone_is_omitted(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era) as client:
        gateway.put(a_tool("tools:odd", annotations={"title": 5, "openWorldHint": "no", "vendor": 1}))
        odd = next(tool for tool in (await client.list_tools()).tools if tool.name == "odd")
        assert odd.annotations is not None
        assert (odd.annotations.title, odd.annotations.open_world_hint) == (None, None)


async def test_announces_tools_and_nothing_else(era: str) -> None:
    async with serve_mcp() as gateway:
        client = gateway.client("auto" if era != "legacy" else era, "jane")
        async with client:
            offered = client.server_capabilities.model_dump(exclude_none=True, exclude_defaults=True)
            assert {name for name, value in offered.items() if value} == {"tools"}
            assert offered["tools"] == {"list_changed": True}
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.version) == ("toolcrib", VERSION)
            assert client.instructions
            assert "toolcrib/agentHints" in client.instructions
