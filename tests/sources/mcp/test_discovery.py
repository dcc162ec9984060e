"""The list of tools is read page by page, and no list is too long, too large or endless."""

from typing import Any

import pytest

from tests.sources.mcp.scripted_connection import UNKNOWN_METHOD, ScriptedConnection, listed
from tests.texts import matches
from toolcrib.model import JsonObject
from toolcrib.sources.mcp import handshake
from toolcrib.sources.mcp.connection import InvalidResponse, JsonRpcError
from toolcrib.sources.mcp.handshake import (
    MAX_LIST_BYTES,
    DiscoveredList,
    ServerIntroduction,
    first_page,
    listing,
)

pytestmark = pytest.mark.anyio

LEGACY = ServerIntroduction(era="legacy", revision="2025-06-18", has_tools=True)
MODERN = ServerIntroduction(era="modern", revision="2026-07-28", has_tools=True)


def pages(params: JsonObject) -> JsonObject:
    """Three pages of two tools each."""
    start = int(params.get("cursor", "0"))
    found = dict(listed(f"t{start}", f"t{start + 1}"))
    return found if start == 4 else {**found, "nextCursor": str(start + 2)}


def names(found: DiscoveredList) -> list[str]:
    return [tool["name"] for tool in found.entries]


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("introduction", [LEGACY, MODERN])
async def test_every_page_is_read(introduction: ServerIntroduction) -> None:
    server = ScriptedConnection(tools__list=pages)
    found = await listing(server, introduction)
    assert names(found) == ["t0", "t1", "t2", "t3", "t4", "t5"]
    assert found.truncation is None
    assert [params.get("cursor") for _, params in server.asked] == [None, "2", "4"]


async def test_modern_list_request_declares_all_capabilities() -> None:
    server = ScriptedConnection(tools__list=listed("a"))
    await listing(server, MODERN)
    await listing(server, LEGACY)
    (_, asked), (_, plain) = server.asked
    assert asked["_meta"]["io.modelcontextprotocol/clientCapabilities"]["sampling"] == {}
    assert plain == {}


async def test_a_cursor_that_comes_again_ends_the_list() -> None:
    server = ScriptedConnection(tools__list={**listed("a"), "nextCursor": "x"})
    found = await listing(server, LEGACY)
    assert names(found) == ["a", "a"]
    assert found.truncation is not None
    assert "read before" in found.truncation


async def test_pagination_is_bounded() -> None:
    def endless(params: JsonObject) -> JsonObject:
        here = int(params.get("cursor", "0"))
        return {**listed(f"t{here}"), "nextCursor": str(here + 1)}

    server = ScriptedConnection(tools__list=endless)
    found = await listing(server, LEGACY)
    assert len(found.entries) == server.count("tools/list") == handshake.MAX_LIST_PAGES
    assert matches("sources", "pagination is bounded", found.truncation)


@pytest.mark.parametrize("more", [{}, {"nextCursor": "1"}])
async def test_list_is_limited_by_tool_count(more: dict[str, Any]) -> None:
    crowd = listed(*(f"t{number}" for number in range(handshake.MAX_LIST_ENTRIES + 1)))
    found = await listing(ScriptedConnection(tools__list={**crowd, **more}), LEGACY)
    assert len(found.entries) == handshake.MAX_LIST_ENTRIES
    assert matches("sources", "list is limited by tool count", found.truncation)


async def test_list_at_the_limit_is_complete_without_next_page() -> None:
    crowd = listed(*(f"t{number}" for number in range(handshake.MAX_LIST_ENTRIES)))
    assert (await listing(ScriptedConnection(tools__list=crowd), LEGACY)).truncation is None
    more = ScriptedConnection(tools__list={**crowd, "nextCursor": "1"})
    assert matches(
        "sources", "list at the limit is complete without next page", (await listing(more, LEGACY)).truncation
    )
    assert more.count("tools/list") == 1


async def test_list_is_limited_by_bytes() -> None:
    large = {"tools": [{"name": "a", "description": "x" * (MAX_LIST_BYTES * 5 // 8)}], "nextCursor": "1"}
    server = ScriptedConnection(
        tools__list=[large, {**large, "nextCursor": "2"}, {**large, "nextCursor": "3"}]
    )
    found = await listing(server, LEGACY)
    assert server.count("tools/list") == 2
    assert f"{MAX_LIST_BYTES:,} bytes" in str(found.truncation)


async def test_the_seal_changes_with_anything_but_the_order_of_keys() -> None:
    async def seal(*tools: JsonObject) -> bytes:
        return (await listing(ScriptedConnection(tools__list={"tools": [*tools]}), LEGACY)).digest

    first = await seal({"name": "a", "description": "d"})
    assert await seal({"description": "d", "name": "a"}) == first
    assert await seal({"name": "a", "description": "e"}) != first
    assert await seal({"name": "a", "description": "d"}, {"name": "b"}) != first


@pytest.mark.parametrize("answer", [{}, {"tools": None}, {"tools": {"a": 1}}])
async def test_a_list_that_is_none_is_a_fault(answer: JsonObject) -> None:
    with pytest.raises(InvalidResponse, match="not a list"):
        await first_page(ScriptedConnection(tools__list=answer), LEGACY)


@pytest.mark.parametrize("cursor", [7, "", None])
async def test_a_cursor_that_is_no_text_is_the_end(cursor: Any) -> None:
    server = ScriptedConnection(tools__list={**listed("a"), "nextCursor": cursor})
    assert (await listing(server, LEGACY)).truncation is None
    assert server.count("tools/list") == 1


async def test_a_server_without_tools_has_none() -> None:
    bare = ServerIntroduction(era="legacy", revision="2025-06-18")
    assert (await listing(ScriptedConnection(tools__list=UNKNOWN_METHOD), bare)).entries == ()
    with pytest.raises(JsonRpcError):
        await listing(ScriptedConnection(tools__list=UNKNOWN_METHOD), LEGACY)


@pytest.mark.requirement("I5")
async def test_cursors_count_towards_the_bytes_of_a_list() -> None:
    def hoard(params: JsonObject) -> JsonObject:
        here = int(params.get("cursor", "0")[:1])
        return {"tools": [], "nextCursor": f"{here + 1}{'c' * (MAX_LIST_BYTES * 3 // 8)}"}

    server = ScriptedConnection(tools__list=hoard)
    found = await listing(server, LEGACY)
    assert server.count("tools/list") == 3
    assert f"{MAX_LIST_BYTES:,} bytes" in str(found.truncation)
