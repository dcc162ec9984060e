"""The list of tools: visibility, styles and search."""

from typing import Any

import pytest

from tests.gateways import InProcessGateway
from toolcrib.formats import RestFormat

pytestmark = pytest.mark.anyio


async def names(gateway: InProcessGateway, query: str = "", **more: Any) -> list[str]:
    reply = await gateway.request("GET", f"/api/tools{query}", **more)
    assert reply.status == 200, reply.body
    assert reply.json["total"] >= len(reply.json["tools"])
    return [tool["name"] for tool in reply.json["tools"]]


async def test_admin_list_omits_hidden_and_removed_tools(gateway: InProcessGateway) -> None:
    listed = await names(gateway)
    assert {"tools:add", "tools:secret", "local:get-datetime"} <= set(listed)
    assert not {"tools:hidden", "tools:old"} & set(listed)


async def test_plain_key_list_omits_forbidden_tools(gateway: InProcessGateway) -> None:
    plain = await gateway.key("plain")
    reader = await gateway.key("reader", permissions=["secrets:read"])
    assert "tools:secret" not in await names(gateway, key=plain)
    assert "tools:secret" in await names(gateway, key=reader)


@pytest.mark.requirement("F4")
async def test_contexts(gateway: InProcessGateway) -> None:
    few = await gateway.key("few", contexts=["few"])
    assert await names(gateway, "?context=few") == ["tools:add"]
    assert await names(gateway, "?context=none") == []
    assert await names(gateway, key=few) == ["tools:add"]
    assert await names(gateway, "?context=few", key=few) == ["tools:add"]
    for context in ("none", "default", "nowhere"):
        reply = await gateway.request("GET", f"/api/tools?context={context}", key=few)
        assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert (await gateway.request("GET", "/api/tools?context=nowhere")).code == "NOT_FOUND"


async def test_styles(gateway: InProcessGateway) -> None:
    assert "get_datetime" in await names(gateway, "?style=safe")
    assert "get-datetime" in await names(gateway, "?style=flat")
    assert "local:get-datetime" in await names(gateway, "?style=qualified")
    assert "get-datetime" in await names(gateway, "?context=flat")
    assert "get_datetime" in await names(gateway, "?format=mcp")


async def test_the_mcp_spelling(gateway: InProcessGateway) -> None:
    reply = await gateway.request("GET", "/api/tools?format=mcp&q=add&limit=1")
    assert set(reply.json["tools"][0]) >= {"name", "description", "inputSchema", "annotations"}
    assert "source" not in reply.json["tools"][0]


@pytest.mark.parametrize(
    "query, path",
    [
        ("?style=loud", "style"),
        ("?format=cobol", "format"),
        ("?format=mcp&style=qualified", "style"),
        ("?limit=0", "limit"),
        ("?limit=ten", "limit"),
        ("?limit=99999999999999", "limit"),
        ("?limit=²", "limit"),
        ("?sort=name", "sort"),
        ("?context=", "context"),
        (f"?context={'x' * 600}", "context"),
    ],
)
async def test_a_wrong_parameter_is_refused_by_name(gateway: InProcessGateway, query: str, path: str) -> None:
    reply = await gateway.request("GET", f"/api/tools{query}")
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert reply.json["error"].get("path", path) == path


@pytest.mark.requirement("F8")
async def test_searching(gateway: InProcessGateway) -> None:
    assert (await names(gateway, "?q=add"))[0] == "tools:add"
    assert (await names(gateway, "?q=two+WHOLE"))[0] == "tools:add"
    assert await names(gateway, "?q=two+WHOLE&limit=1") == ["tools:add"]
    assert await names(gateway, "?q=maths") == ["tools:add"]
    assert await names(gateway, "?q=mahts") == ["tools:add"]
    assert await names(gateway, "?q=astronomy+whatever") == []
    assert len(await names(gateway, "?q=")) == len(await names(gateway))


async def test_truncated_list_has_the_total(gateway: InProcessGateway) -> None:
    whole = (await gateway.request("GET", "/api/tools")).json
    cut = (await gateway.request("GET", "/api/tools?limit=2")).json
    assert cut["tools"] == whole["tools"][:2]
    assert cut["total"] == whole["total"] == len(whole["tools"])


async def test_a_list_is_prepared_once(gateway: InProcessGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await gateway.request("GET", "/api/tools")
    await gateway.request("GET", "/api/tools?q=add")
    monkeypatch.setattr(RestFormat, "tool", None)
    assert (await gateway.request("GET", "/api/tools")).body == first.body
    assert (await gateway.request("GET", "/api/tools?q=two")).status == 200
    assert (await gateway.request("HEAD", "/api/tools")).headers["content-length"] == str(len(first.body))
