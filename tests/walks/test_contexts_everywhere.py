"""A tool that is not in a context: no face, no format and no spelling leads to it, in a thousand contexts."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from tests.contracts.dialogues import DIALOGUES, Said
from tests.gateways import ADMIN, InProcessGateway
from toolcrib import Crib, create_tool
from toolcrib.config import parse
from toolcrib.formats import PROVIDERS
from toolcrib.model import Category
from toolcrib.sdk import AnyTool
from toolcrib.server import GatewayApp

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F4", "A5")]

WORDS = ("read", "write", "list", "send"), ("card", "deck", "note")
TAGS = ("home", "work", "play")
CATEGORIES: tuple[Category, ...] = ("query", "mutation", "analysis", "generation")
LEGACY, MODERN = "2025-11-25", "2026-07-28"
PLAIN = {"accept": "application/json, text/event-stream"}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Thing:
    """A tool, as far as contexts look at it."""

    local: str
    tag: str
    category: Category
    alias: str

    @property
    def safe(self) -> str:
        return self.local.replace("-", "_")

    def spellings(self) -> tuple[str, ...]:
        """All that means this tool, to somebody who sees it."""
        names = (f"tools:{self.local}", self.safe, self.local, self.alias)
        return (*names, *(each.upper() for each in names), *(each.replace("-", "_") for each in names))


def things() -> Iterator[Thing]:
    for gateway, local in enumerate(f"{verb}-{noun}" for verb in WORDS[0] for noun in WORDS[1]):
        yield Thing(local, TAGS[gateway % 3], CATEGORIES[gateway % 4], f"old-{gateway}")


THINGS = tuple(things())


def entry(random: Random) -> tuple[str, set[str]]:
    """One entry of a context and the tools it means, found without asking the house."""
    one = random.choice(THINGS)
    verb, noun = one.local.split("-")
    return random.choice(
        (
            (random.choice(one.spellings()[:2]), {one.local}),
            (f"TOOLS:{one.safe}", {one.local}),
            (one.alias, {one.local}),
            (f"tools:{verb}*", {each.local for each in THINGS if each.local.startswith(verb)}),
            (f"*_{noun}", {each.local for each in THINGS if each.local.endswith(noun)}),
            (f"tag:{one.tag}", {each.local for each in THINGS if each.tag == one.tag}),
            (f"category:{one.category}", {each.local for each in THINGS if each.category == one.category}),
            ("tools:nothing-like-it", set[str]()),
            ("local:*", set[str]()),
        )
    )


def contexts(random: Random, number: int) -> dict[str, tuple[list[str], set[str]]]:
    """So many contexts: their entries, and what is in them."""
    found: dict[str, tuple[list[str], set[str]]] = {}
    for gateway in range(number):
        entries = [entry(random) for _ in range(random.choice((0, 1, 1, 2, 3)))]
        means = set[str]().union(*(each for _, each in entries))
        found[f"c{gateway}"] = [text for text, _ in entries], means
    return found


class ContextGateway:
    """A house with these contexts, its faces, and a note of every tool that was really run."""

    def __init__(self, crib: Crib, client: InProcessGateway, ran: list[str]) -> None:
        self._crib, self._client, self.ran = crib, client, ran

    async def rest(self, context: str, name: str) -> bool:
        """Call a tool over REST; whether it answered."""
        body = {"name": name, "context": context}
        return (await self._client.request("POST", "/api/tools/execute", body=body)).status == 200

    async def library(self, context: str, name: str) -> bool:
        return (await self._crib.call(name, context=context)).problem is None

    async def answer(self, context: str, name: str, format: str) -> bool:
        message = DIALOGUES[format].asks([Said(id="call_1", name=name)])
        body = {"format": format, "message": message, "context": context}
        reply = await self._client.request("POST", "/api/tools/answer", body=body)
        assert reply.status == 200, reply.body
        (said,) = DIALOGUES[format].replies(reply.json["messages"])
        again = await self._crib.answer(message, format=format, context=context)
        assert DIALOGUES[format].replies([dict(each) for each in again])[0].failed is said.failed
        return not said.failed

    async def modern(self, context: str, name: str) -> bool:
        headers = {**PLAIN, "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": name}
        return await self._mcp(context, {"name": name, "arguments": {}, "_meta": META}, headers)

    async def legacy(self, context: str, name: str) -> bool:
        client = {"name": "t", "version": "1"}
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        target = f"/contexts/{context}/mcp"
        session = (await self._client.request("POST", target, body=opening, headers=PLAIN)).headers[
            "mcp-session-id"
        ]
        headers = {**PLAIN, "mcp-session-id": session, "mcp-protocol-version": LEGACY}
        return await self._mcp(context, {"name": name, "arguments": {}}, headers)

    async def _mcp(self, context: str, params: dict[str, Any], headers: dict[str, str]) -> bool:
        sent = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        reply = await self._client.request("POST", f"/contexts/{context}/mcp", body=sent, headers=headers)
        return "result" in reply.json and not reply.json["result"]["isError"]

    async def every_way(self, context: str, names: Iterator[str]) -> list[bool]:
        """Try every face and every format, each with another spelling."""
        faces = (self.rest, self.library, self.modern, self.legacy)
        tried = [await face(context, next(names)) for face in faces]
        return tried + [await self.answer(context, next(names), each) for each in PROVIDERS]

    async def listed(self, context: str) -> set[str]:
        """Whichever of the things are on the list; flat names are kept from tools that are hidden."""
        reply = await self._client.request("GET", f"/api/tools?context={context}&style=qualified")
        return {each["name"].removeprefix("tools:") for each in reply.json["tools"]}


def made(thing: Thing, ran: list[str]) -> AnyTool:
    async def run() -> str:
        ran.append(thing.local)
        return "done"

    run.__doc__ = "Take note that it was run, and say so."
    return create_tool(name=thing.local, category=thing.category, tags=[thing.tag])(run)


@asynccontextmanager
async def gateway(chosen: dict[str, tuple[list[str], set[str]]]) -> AsyncGenerator[ContextGateway]:
    aliases = {f"tools:{each.local}": {"aliases": [each.alias]} for each in THINGS}
    config = {
        "contexts": {name: {"tools": entries} for name, (entries, _) in chosen.items()},
        "overrides": aliases,
        "limits": {"per_user": None},
    }
    env = {"TOOLCRIB_ADMIN_KEY": ADMIN}
    ran: list[str] = []
    tools = [made(each, ran) for each in THINGS]
    document = parse(json.dumps({**config, "store": "sqlite://"}), "toolcrib.yaml", env)
    async with Crib(tools, document=document, env=env) as crib:
        server = GatewayApp(crib.runtime)
        async with server.running():
            yield ContextGateway(crib, InProcessGateway(crib.runtime, server), ran)


async def walk(number: int, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - the same contexts in every run
    chosen = contexts(random, number)
    async with gateway(chosen) as runtime:
        for context, (entries, means) in chosen.items():
            there = [each for each in THINGS if each.local in means]
            elsewhere = [each for each in THINGS if each.local not in means]
            assert await runtime.listed(context) & {each.local for each in THINGS} == means, entries
            if elsewhere:
                names = iter(lambda left=elsewhere: random.choice(random.choice(left).spellings()), None)
                assert not any(await runtime.every_way(context, names)), entries
                assert runtime.ran == [], entries
            if there and random.random() < 0.1:
                names = iter(lambda left=there: random.choice(random.choice(left).spellings()), None)
                assert all(await runtime.every_way(context, names)), entries
                assert set(runtime.ran) <= means
                runtime.ran.clear()


@pytest.mark.check(3)
async def test_tools_outside_context_are_not_callable() -> None:
    await walk(8, seed=1)


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.check(3)
async def test_nor_in_a_thousand_contexts() -> None:
    await walk(1_000, seed=2)
