"""What sources answer in blocks: the protocol's own pass, any other becomes an error a client can read."""

from typing import Any

import pytest
from mcp import Client
from mcp_types import ImageContent, TextContent

from tests.faces.mcp.served import ERAS
from toolcrib.catalog import Catalog
from toolcrib.errors import problem
from toolcrib.faces.mcp.server import ToolServer
from toolcrib.gateway import Completion, Gateway
from toolcrib.interfaces import Offer
from toolcrib.model import Call, Result
from toolcrib.policy import Context, Contexts, Policy
from toolcrib.testing import Recordings, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]

PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def a_server(*blocks: dict[str, Any], **more: Any) -> ToolServer:
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
    return ToolServer(gateway, lambda _request: a_caller())


async def test_blocks_of_the_protocol_pass_with_the_notes_beside_them(era: str) -> None:
    async with Client(a_server(PICTURE, {"type": "text", "text": "hi"}), mode=era, cache=None) as client:
        result = await client.call_tool("show")
        picture, words = result.content
        assert isinstance(picture, ImageContent)
        assert isinstance(words, TextContent)
        assert result.meta is not None
        assert result.meta["vendor/note"] == "fake:show"


async def test_a_block_nobody_knows_is_an_error(era: str) -> None:
    async with Client(a_server({"type": "hologram", "data": "…"}), mode=era, cache=None) as client:
        result = await client.call_tool("show")
        assert result.is_error
        assert result.meta is not None
        assert result.meta["toolcrib/error"]["code"] == "CONTRACT_VIOLATION"


async def test_a_tool_that_failed_says_so_in_its_own_blocks(era: str) -> None:
    failed = problem("TOOL_FAILED", "no such file")
    server = a_server({"type": "text", "text": "ENOENT: it is not there"}, PICTURE, problem=failed)
    async with Client(server, mode=era, cache=None) as client:
        result = await client.call_tool("show")
        assert result.is_error
        words, picture = result.content
        assert isinstance(words, TextContent)
        assert words.text == "ENOENT: it is not there"
        assert isinstance(picture, ImageContent)
        assert result.meta is not None
        assert result.meta["toolcrib/error"]["message"] == "no such file"


async def test_what_was_read_out_of_text_is_not_structured_content(era: str) -> None:
    said = {"type": "text", "text": '{"n": 1}'}
    for structured in (True, False):
        async with Client(
            a_server(said, data={"n": 1}, structured=structured), mode=era, cache=None
        ) as client:
            result = await client.call_tool("show")
            assert result.structured_content == ({"n": 1} if structured else None)
