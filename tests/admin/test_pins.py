"""Approvals: the definition that is meant, for the server it was seen on, and never against the file."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from toolcrib.catalog import seal
from toolcrib.catalog.pins import MAX_PINNED_BYTES
from toolcrib.config import parse
from toolcrib.errors import Refused
from toolcrib.interfaces import Offer
from toolcrib.runtime import Runtime, build
from toolcrib.testing import a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]

PINNED = "0" * 64
OFF = {"transport": "http", "url": "http://127.0.0.1:9/mcp", "enabled": False, "pin": "strict"}


def offer(runtime: Runtime, source: str, name: str = "read", **said: Any) -> str:
    """A server that does not run has this to offer; the answer is its hash."""
    whole, definition = f"{source}:{name}", {"name": name, **said}
    runtime.console.catalog.replace(
        source, Offer(tools=[a_tool(whole, family="mcp")], definitions={whole: definition})
    )
    return seal(definition)


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncGenerator[Runtime]:
    config = {"mcp": {"servers": {"a": OFF, "b": OFF}}, "pins": {"a:fixed": PINNED}}
    env = {"TOOLCRIB_HOME": str(tmp_path)}
    async with build(parse(json.dumps(config), "toolcrib.yaml", env), env=env) as running:
        yield running


async def refusal(runtime: Runtime, name: str) -> Refused:
    before = await runtime.console.store.overlay.load()
    with pytest.raises(Refused) as refused:
        await runtime.console.servers.approve(name)
    assert await runtime.console.store.overlay.load() == before
    return refused.value


async def test_an_approval_by_flat_name_is_for_its_owner_alone(runtime: Runtime) -> None:
    servers = runtime.console.servers
    for source in ("a", "b"):
        offer(runtime, source)
    assert (await refusal(runtime, "read")).problem.code == "NOT_FOUND"
    changed = offer(runtime, "b", description="other")
    assert (await refusal(runtime, "read")).problem.code == "NOT_FOUND"
    assert await servers.approve("b:read") == {"name": "b:read", "seal": changed}
    for source in ("a", "b"):
        offer(runtime, source, description="another")
    assert (await servers.approve("read"))["name"] == "a:read"
    assert [pin["name"] for pin in servers.pins()] == ["b:read"]


async def test_approval_of_file_pin_is_refused(runtime: Runtime) -> None:
    offer(runtime, "a", "fixed")
    refused = await refusal(runtime, "a:fixed")
    assert refused.problem.code == "SCOPE_DENIED"
    assert "config file" in str(refused)


async def test_tool_without_hash_cannot_be_approved(runtime: Runtime) -> None:
    offer(runtime, "a", description="x" * (MAX_PINNED_BYTES + 1))
    assert "too large" in str(await refusal(runtime, "a:read"))


async def test_approved_tool_can_be_approved_again(runtime: Runtime) -> None:
    offer(runtime, "a")
    for said in ("one", "two"):
        changed = offer(runtime, "a", description=said)
        assert (await runtime.console.servers.approve("a:read"))["seal"] == changed
        assert runtime.console.servers.pins() == []


async def test_a_server_that_is_removed_takes_its_approvals_along(runtime: Runtime) -> None:
    servers, added = runtime.console.servers, {**OFF}
    await servers.add("c", added)
    for source in ("a", "c"):
        offer(runtime, source)
        offer(runtime, source, description="other")
        await servers.approve(f"{source}:read")
    await servers.remove("c")
    _, overlay = await runtime.console.store.overlay.load()
    assert list(overlay["pins"]) == ["a:read"]
