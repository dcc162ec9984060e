"""Resources and prompts of other people's servers, through the gateway, for clients of both eras."""

import sys
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourceUpdated
from mcp_types import (
    ElicitResult,
    EmptyResult,
    PromptListChangedNotification,
    PromptReference,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    SubscribeRequest,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)

from tests.frontends.mcp.mcp_gateway import listening
from tests.runtime.servers import ROOT, running, write
from tests.servers.third_party import npm
from tests.waiting import until
from toolcrib.frontends.mcp import StreamableHttpFrontend
from toolcrib.http import Receive, Request, Scope, Send, send_response
from toolcrib.model import Caller
from toolcrib.runtime import Runtime

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ERAS = ("legacy", "auto")
"""What the client tries first: without a word of ours it is the modern era."""
ANYONE = Caller(id="anyone", permissions=frozenset({"*"}), context="flat")


def python(module: str, *arguments: str, **more: Any) -> dict[str, Any]:
    return {
        "transport": "stdio",
        "command": [sys.executable, "-m", module, *arguments],
        "cwd": str(ROOT),
        **more,
    }


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[Runtime, str]]:
    """The reference server (handshake era), one on the official SDK (modern), and our own of either era."""
    path = tmp_path_factory.mktemp("walk") / "toolcrib.yaml"
    servers = {
        "everything": {"transport": "stdio", "command": list(npm("mcp-server-everything", "stdio"))},
        "fixture": python("tests.conformance.fixture", "stdio"),
        "old": python("tests.servers.resource_server", "old", "a"),
        "new": python("tests.servers.resource_server", "new", "b"),
    }
    write(path, servers, contexts={"flat": {"tools": ["*"], "style": "flat"}})
    async with running(path) as runtime:
        face = StreamableHttpFrontend(runtime.gateway, b"0" * 32, runtime.console.store)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive, send)
            request.caller = ANYONE
            answer = await face.answer(request)
            if answer is not None:
                await send_response(request, answer)

        async with face.run(), listening(app) as port:
            yield runtime, f"http://127.0.0.1:{port}/mcp"
            face.end()


def client(gateway: tuple[Runtime, str], era: str, **more: Any) -> Client:
    return Client(gateway[1], mode=era, cache=None, read_timeout_seconds=20, **more)


async def text(reader: Client, uri: str) -> str:
    (held,) = (await reader.read_resource(uri)).contents
    assert held.uri == uri
    assert isinstance(held, TextResourceContents)
    return held.text


@pytest.mark.parametrize("era", ERAS)
async def test_all_is_listed_and_can_be_read(gateway: tuple[Runtime, str], era: str) -> None:
    async with client(gateway, era) as reader:
        assert reader.server_capabilities is not None
        assert reader.server_capabilities.resources is not None
        uris = [each.uri for each in (await reader.list_resources()).resources]
        shared = [uri for uri in uris if uri.endswith("doc://shared")]
        assert shared == ["doc://shared", "toolcrib://new/doc://shared"]
        assert [await text(reader, uri) for uri in shared] == ["shared by a", "shared by b"]
        assert "Everything Server" in await text(reader, "demo://resource/static/document/architecture.md")
        assert await text(reader, "test://static-text") == "It never changes."
        templates = [
            each.uri_template for each in (await reader.list_resource_templates()).resource_templates
        ]
        assert {"demo://resource/dynamic/text/{resourceId}", "test://template/{id}/data"} <= set(templates)
        assert "Resource 7" in await text(reader, "demo://resource/dynamic/text/7")
        assert await text(reader, "test://template/9/data") == '{"id": "9"}'
        for unknown in ("nowhere://1", "toolcrib://everything/nowhere://1", "toolcrib://fixture/nowhere://1"):
            with pytest.raises(MCPError) as caught:
                await reader.read_resource(unknown)
            assert caught.value.error.code in {-32002, -32602}
            assert caught.value.error.data["uri"] == unknown


@pytest.mark.parametrize("era", ERAS)
async def test_prompts_are_got_and_completed(gateway: tuple[Runtime, str], era: str) -> None:
    async def answer(_context: Any, _params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"context": "tests"})

    async with client(gateway, era, elicitation_callback=answer) as reader:
        names = [each.name for each in (await reader.list_prompts()).prompts]
        assert {"simple-prompt", "test_prompt_with_arguments", "mcp_old_greet", "mcp_new_greet"} <= set(names)
        filled = await reader.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        assert isinstance(filled.messages[0].content, TextContent)
        assert filled.messages[0].content.text == "First one, then two."
        weather = await reader.get_prompt("args-prompt", {"city": "Bern"})
        assert "Bern" in str(weather.messages[0].content)
        asked = await reader.get_prompt("test_input_required_result_prompt")
        assert "tests" in str(asked.messages[0].content)
        ref = PromptReference(name="test_prompt_with_arguments")
        words = await reader.complete(ref, {"name": "arg1", "value": "tes"})
        assert words.completion.values == ["test", "testament"]
        template = ResourceTemplateReference(uri="demo://resource/dynamic/text/{resourceId}")
        found = await reader.complete(template, {"name": "resourceId", "value": "1"})
        assert found.completion.values
        with pytest.raises(MCPError, match="there is no prompt named"):
            await reader.get_prompt("nobody-wrote-this")


@pytest.mark.parametrize("source, uri", [("old", "doc://a/one"), ("new", "doc://b/one")])
async def test_session_is_notified_of_its_subscriptions(
    gateway: tuple[Runtime, str], source: str, uri: str
) -> None:
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    async with client(gateway, "legacy", message_handler=hear) as reader:
        wanted = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
        await reader.session.send_request(wanted, EmptyResult)

        async def edited() -> bool:
            await gateway[0].gateway.call(f"{source}:edit", {"uri": uri, "text": "again"}, ANYONE)
            return any(isinstance(each, ResourceUpdatedNotification) for each in heard)

        with anyio.fail_after(20):
            while not await edited():  # the client opens the stream it hears on in its own time
                await anyio.lowlevel.checkpoint()
        assert {each.params.uri for each in heard if isinstance(each, ResourceUpdatedNotification)} == {uri}
        await gateway[0].gateway.call(f"{source}:acquire", {"prompt": f"{source}-late"}, ANYONE)
        await until(lambda: any(isinstance(each, PromptListChangedNotification) for each in heard))
        left = UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri))
        await reader.session.send_request(left, EmptyResult)


@pytest.mark.parametrize("source, uri", [("old", "doc://a/one"), ("new", "toolcrib://new/doc://b/one")])
async def test_stream_carries_requested_updates(gateway: tuple[Runtime, str], source: str, uri: str) -> None:
    own = uri.removeprefix("toolcrib://new/")
    async with client(gateway, ERAS[1]) as reader:
        uris = [uri, "nowhere://1"]
        async with reader.listen(resource_subscriptions=uris, prompts_list_changed=True) as told:
            await gateway[0].gateway.call(f"{source}:edit", {"uri": own, "text": "more"}, ANYONE)
            await gateway[0].gateway.call(f"{source}:acquire", {"prompt": f"{source}-later"}, ANYONE)
            heard: list[Any] = []
            with anyio.fail_after(20):
                async for event in told:
                    heard.append(event)
                    if len(heard) == 2:
                        break
    assert ResourceUpdated(uri=uri) in heard
    assert PromptsListChanged() in heard
