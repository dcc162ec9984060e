"""What sources answer in blocks: the protocol's own pass, any other becomes an error a client can read."""

from typing import Any

import pytest
from mcp import Client
from mcp_types import ImageContent, TextContent

from tests.faces.mcp.served import ERAS
from toolcrib.catalog import Catalog
from toolcrib.faces.mcp.server import ToolServer
from toolcrib.gateway import Completion, Gateway
from toolcrib.model import Call, Result
from toolcrib.policy import Context, Contexts, Policy
from toolcrib.testing import Recordings, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]

PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def a_server(*blocks: dict[str, Any]) -> ToolServer:
    async def answer(call: Call) -> Result:
        return Result(content=blocks, meta={"vendor/note": call.tool.name})

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
    catalog.replace("fake", [a_tool("fake:show")])
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
