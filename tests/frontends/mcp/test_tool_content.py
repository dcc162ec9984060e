"""What sources answer in blocks: the protocol's own pass, as old as the client; others are an error."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp_types import ImageContent, TextContent
from mcp_types.methods import serialize_server_result

from tests.frontends.mcp.mcp_gateway import ERAS, listening
from toolcrib.catalog import Catalog
from toolcrib.errors import problem
from toolcrib.frontends.mcp import StreamableHttpFrontend
from toolcrib.frontends.mcp.tool_calls import fitted
from toolcrib.gateway import Completion, Gateway
from toolcrib.http import Receive, Request, Scope, Send, send_response
from toolcrib.interfaces import Offer
from toolcrib.mcp.revisions import MODERN, REVISIONS
from toolcrib.model import Call, Result
from toolcrib.policy import Context, Contexts, Policy
from toolcrib.store import open_store
from toolcrib.testing import Recordings, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PICTURE: dict[str, Any] = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
SOUND: dict[str, Any] = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
LINK: dict[str, Any] = {"type": "resource_link", "uri": "file:///a", "name": "a"}
HELD: dict[str, Any] = {"type": "resource", "resource": {"uri": "file:///a", "text": "hi"}}
WORDS: dict[str, Any] = {"type": "text", "text": "hi", "annotations": {"priority": 1.0}, "_meta": {"v/x": 1}}


@asynccontextmanager
async def answering(era: str, *blocks: dict[str, Any], **more: Any) -> AsyncGenerator[Client]:
    """A client of a gateway whose one tool answers so."""

    async def answer(call: Call) -> Result:
        return Result(content=blocks, meta={"vendor/note": call.tool.name}, **more)

    contexts = Contexts({"default": Context()})
    gateway = Gateway(
        Policy((contexts,)),
        lambda _tool: answer,
        Completion(lambda _tool: (1.0, 0.0, 0)),
        Recordings(),
        new_id=lambda: "id",
        contexts=lambda: contexts.contexts,
    )
    catalog = Catalog(["fake"])
    catalog.listen(gateway.adopt)
    catalog.replace("fake", Offer(tools=[a_tool("fake:show")]))
    store = await open_store("sqlite://")
    face = StreamableHttpFrontend(gateway, b"k", store)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        request.caller = a_caller()
        answer = await face.answer(request)
        if answer is not None:
            await send_response(request, answer)

    async with listening(app) as port, face.run():
        client = Client(f"http://127.0.0.1:{port}/mcp", mode=era, cache=None, read_timeout_seconds=20)
        try:
            async with client:
                yield client
        finally:
            face.end()
    await store.close()


@pytest.mark.parametrize("era", ERAS)
async def test_blocks_of_the_protocol_pass_with_the_notes_beside_them(era: str) -> None:
    async with answering(era, PICTURE, WORDS, SOUND, LINK, HELD) as client:
        result = await client.call_tool("show")
        spelled = [each.model_dump(by_alias=True, exclude_none=True, mode="json") for each in result.content]
        assert spelled == [PICTURE, WORDS, SOUND, LINK, HELD]
        assert result.meta is not None
        assert result.meta["vendor/note"] == "fake:show"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "odd",
    [
        {"type": "hologram", "data": "…"},
        {"type": "image", "data": "aGk="},
        {"type": "resource", "resource": {"uri": "file:///a"}},
        {"type": "resource_link", "uri": "file:///a"},
        {"type": "text", "text": "hi", "annotations": 5},
    ],
)
async def test_a_block_that_is_not_the_protocols_is_an_error(era: str, odd: dict[str, Any]) -> None:
    async with answering(era, odd) as client:
        result = await client.call_tool("show")
        assert result.is_error
        assert result.meta is not None
        assert result.meta["toolcrib/error"]["code"] == "CONTRACT_VIOLATION"


@pytest.mark.parametrize("era", ERAS)
async def test_failed_tool_keeps_its_content_blocks(era: str) -> None:
    failed = problem("TOOL_FAILED", "no such file")
    said = {"type": "text", "text": "ENOENT: it is not there"}
    async with answering(era, said, PICTURE, problem=failed) as client:
        result = await client.call_tool("show")
        assert result.is_error
        words, picture = result.content
        assert isinstance(words, TextContent)
        assert words.text == said["text"]
        assert isinstance(picture, ImageContent)
        assert result.meta is not None
        assert result.meta["toolcrib/error"]["message"] == "no such file"


@pytest.mark.parametrize("era", ERAS)
async def test_data_parsed_from_text_is_not_structured_content(era: str) -> None:
    said = {"type": "text", "text": '{"n": 1}'}
    for structured in (True, False):
        async with answering(era, said, data={"n": 1}, structured=structured) as client:
            result = await client.call_tool("show")
            assert result.structured_content == ({"n": 1} if structured else None)


@pytest.mark.parametrize("era", ERAS)
async def test_non_object_structure_is_sent_to_supporting_clients(era: str) -> None:
    async with answering(era, WORDS, data=[1, 2]) as client:
        result = await client.call_tool("show")
        assert result.structured_content == ([1, 2] if era == MODERN else None)


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_revision_gets_blocks_it_knows(revision: str) -> None:
    blocks = (PICTURE, WORDS, SOUND, LINK, HELD)
    fit = fitted(Result(content=blocks), revision)
    assert fit is not None
    kinds = [block["type"] for block in fit.content]
    older = {"2024-11-05": ["resource", "text"], "2025-03-26": ["audio", "text"]}
    assert kinds == ["image", "text", *older.get(revision, ["audio", "resource_link"]), "resource"]
    spelled = {"content": list(fit.content), "resultType": "complete"}
    assert serialize_server_result("tools/call", revision, spelled)["content"] == list(fit.content)
    if revision == "2024-11-05":
        assert fit.content[2]["resource"]["blob"] == SOUND["data"]
        assert fit.content[3]["text"] == "a: file:///a"
