"""The tools of apps pass what every tool passes, on every face: permission, arguments, limit, whole hints."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.asking import SERVED, Asker
from tests.hint_fields import HINT_FIELD_SET
from tests.walks.app_host import QUICK, AppHost, host_with_apps
from tests.walks.fake_app import FakeApp
from toolcrib.hints import read

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PACKAGE = "com.example.cards"
CONFIG = f"""{QUICK}
limits: {{per_user: null}}
contexts: {{default: {{hints: full}}}}
overrides:
  "{PACKAGE}:guarded": {{permissions: ["cards:read", "decks:read"]}}
  "{PACKAGE}:limited_*": {{rate_limit: 1/h}}
"""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "description": "how many", "minimum": 1},
        "note": {"type": "string", "description": "a note"},
    },
    "required": ["count"],
}
LIMITED = {face: f"limited_{face}" for face in SERVED}


def _tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": "Counts what it is told to count.", "inputSchema": SCHEMA}


class Cards:
    """An app with a guarded tool, an open one and one with a limit for each face; its user's keys."""

    def __init__(self, host: AppHost, fake_app: FakeApp) -> None:
        self.runtime, self.fake_app, self.asker = host, fake_app, Asker(host.gateway)

    async def key(self, name: str, *permissions: str) -> str:
        return await self.runtime.gateway.key(name, user="ann", permissions=list(permissions))

    async def ask(self, face: str, tool: str, arguments: Any, key: str) -> Any:
        return await self.asker.ask(face, f"{PACKAGE}:{tool}", arguments, key=key)


@pytest.fixture
async def cards() -> AsyncGenerator[Cards]:
    tools = [_tool(name) for name in ("guarded", "open", *LIMITED.values())]
    async with host_with_apps(PACKAGE, config=CONFIG, tools=tools) as (host, (fake_app,)):
        yield Cards(host, fake_app)


@pytest.mark.requirement("E1", "E10")
async def test_without_every_permission_nothing_runs(cards: Cards) -> None:
    keys = [await cards.key("none"), await cards.key("other", "decks:read", "cards:write")]
    reader = await cards.key("reader", "cards:read", "decks:read")
    for face in SERVED:
        for key in keys:
            answer = await cards.ask(face, "guarded", {"count": 1}, key)
            assert answer.code == "PERMISSION_DENIED", face
            assert "cards:read" in answer.error["message"]
    assert not cards.fake_app.webhooks
    for face in SERVED:
        assert (await cards.ask(face, "guarded", {"count": 1}, reader)).code is None, face
    assert len(cards.fake_app.calls) == len(SERVED)


@pytest.mark.requirement("E10", "D6")
async def test_invalid_arguments_do_not_start_the_app(cards: Cards) -> None:
    key = await cards.key("plain")
    for face in SERVED:
        for arguments, path in (
            ({}, "arguments.count"),
            ({"count": 0}, "arguments.count"),
            ({"count": 1.5}, "arguments.count"),
            ({"count": 1, "note": None}, "arguments.note"),
        ):
            answer = await cards.ask(face, "open", arguments, key)
            assert (answer.code, answer.error["path"]) == ("INVALID_ARGUMENTS", path), face
    assert not cards.fake_app.webhooks


@pytest.mark.requirement("E12", "D13")
async def test_over_its_limit_nothing_runs(cards: Cards) -> None:
    key = await cards.key("plain")
    for face, tool in LIMITED.items():
        assert (await cards.ask(face, tool, {"count": 1}, key)).code is None
        over = await cards.ask(face, tool, {"count": 1}, key)
        assert over.code == "RATE_LIMITED", face
        assert 0 < over.error["retryAfter"] <= 3600
    assert len(cards.fake_app.calls) == len(SERVED)


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def _done(content: Any) -> Any:
    return {"success": True, "content": content}


def _replied(reply: Any) -> Any:
    return {"status": "success", "reply": reply}


def _erred(text: str) -> Any:
    return {"status": "error", "message": text}


def _failed(code: str, text: str) -> Any:
    return {"success": False, "error": {"code": code, "message": text}}


answers: st.SearchStrategy[Any] = st.one_of(
    values.map(_done),
    values.map(_replied),
    st.text(max_size=20).map(_erred),
    st.builds(_failed, st.text(max_size=10), st.text(max_size=20)),
    values,
)


@pytest.mark.no_cover
@pytest.mark.requirement("E7")
@given(answer=answers, face=st.sampled_from(SERVED), status=st.sampled_from([200, 200, 200, 404, 500]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_every_answer_has_all_of_its_hints(cards: Cards, answer: Any, face: str, status: int) -> None:
    async def says(*_: Any) -> web.StreamResponse:
        return web.json_response(answer, status=status)

    cards.fake_app.tool = says
    cards.runtime.gateway.runtime.console.servers.breaker.forget(PACKAGE)
    keys = await cards.runtime.made("GET", "/api/keys")
    name = f"key{len(keys['keys'])}"
    said = await cards.ask(face, "open", {"count": 1}, await cards.key(name))
    assert said.hints.keys() >= HINT_FIELD_SET
    assert read(said.hints) is not None
    assert said.metadata["traceId"]
