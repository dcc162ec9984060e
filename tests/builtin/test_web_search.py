"""Web search queries a server with SearXNG's JSON API, over kept-alive connections."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.texts import matches
from toolcrib.builtin import SearchSettings, local_tools
from toolcrib.builtin.web_search import SearchHit, SearchHits, Searxng, search_web
from toolcrib.errors import BusinessRuleError, ToolcribError
from toolcrib.sdk import ToolContext, ToolResult

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

ROW = {"url": "https://example.org/a", "engine": "x", "score": 1.0, "category": "general", "positions": [1]}
BODY: dict[str, Any] = {
    "query": "tide",
    "number_of_results": 0,
    "results": [
        {**ROW, "title": "Tide\n tables", "content": "High at\tnine.", "publishedDate": None},
        {**ROW, "url": "https://example.org/b", "title": "More", "content": None},
        {**ROW, "url": "javascript:alert(1)", "title": "Odd", "content": ""},
        "not a row",
        {"title": "no address"},
        {**ROW, "url": "http://example.org/c", "title": "Third", "content": "Three."},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": ["tide times"],
    "unresponsive_engines": [["y", "timeout"]],
}


@asynccontextmanager
async def serving(answer: Answer) -> AsyncGenerator[str]:
    """A server that answers every search the same way."""
    app = web.Application()
    app.router.add_get("/sub/search", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/sub"
    finally:
        await runner.cleanup()


async def ask(url: str, query: str = "tide", limit: int = 5, timeout: float = 5.0) -> Sequence[SearchHit]:
    engine = Searxng(SearchSettings(url, timeout))
    try:
        return await engine.search(query, limit=limit, language="de")
    finally:
        await engine.aclose()


@pytest.mark.requirement("F6")
async def test_results_come_with_title_address_and_text() -> None:
    asked: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(dict(request.query))
        assert request.headers["User-Agent"].startswith("toolcrib/")
        return web.json_response(BODY)

    async with serving(answer) as url:
        local = local_tools(SearchSettings(url + "/"))
        search = local.tools[2]
        result: ToolResult[SearchHits] = await search(ToolContext(language="de"), "tide & time", 2)
        await local.aclose()
    assert asked == [{"q": "tide & time", "format": "json", "language": "de"}]
    assert result.data == SearchHits(
        query="tide & time",
        results=[
            SearchHit(title="Tide tables", url="https://example.org/a", snippet="High at nine."),
            SearchHit(title="More", url="https://example.org/b", snippet=""),
        ],
    )
    assert matches("tools", "results come with title address and text", result.message)


async def test_results_without_url_are_omitted() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(BODY)

    async with serving(answer) as url:
        found = await ask(url, limit=20)
    assert [hit.url for hit in found] == [
        "https://example.org/a",
        "https://example.org/b",
        "http://example.org/c",
    ]


async def test_connections_are_kept_and_come_back_after_closing() -> None:
    ports: set[int] = set()

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.json_response(BODY)

    async with serving(answer) as url:
        engine = Searxng(SearchSettings(url))
        for _ in range(3):
            await engine.search("tide", limit=1, language="en")
        assert len(ports) == 1
        await engine.aclose()
        await engine.aclose()
        await engine.search("tide", limit=1, language="en")
        assert len(ports) == 2
        await engine.aclose()


async def test_singular_and_empty_result_texts() -> None:
    class Few:
        def __init__(self, *hits: SearchHit) -> None:
            self.hits = hits

        async def search(self, query: str, *, limit: int, language: str) -> Sequence[SearchHit]:
            return self.hits

        async def aclose(self) -> None: ...

    hit = SearchHit(title="Only", url="https://example.org", snippet="")
    assert matches(
        "tools", "singular and empty result texts", (await search_web(Few())(ToolContext(), "x")).message
    )
    assert matches(
        "tools", "singular and empty result texts 2", (await search_web(Few(hit))(ToolContext(), "x")).message
    )


@pytest.mark.requirement("F6")
async def test_missing_server_error_names_the_setting() -> None:
    local = local_tools()
    with pytest.raises(BusinessRuleError, match=r"`search\.url`") as caught:
        await local.tools[2](ToolContext(), "tide")
    assert caught.value.problem.tool_code == "NOT_CONFIGURED"
    await local.aclose()


async def fails(answer: Answer, timeout: float = 5.0) -> ToolcribError:
    async with serving(answer) as url:
        with pytest.raises(ToolcribError) as caught:
            await ask(url, timeout=timeout)
    assert "127.0.0.1" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "status,retryable,said",
    [
        (403, False, "must list `json`"),
        (429, True, "too many searches"),
        (404, False, "`search.url` may be wrong"),
        (500, True, "status 500"),
        (302, False, "status 302"),
    ],
)
async def test_bad_status_is_an_error_with_advice(status: int, retryable: bool, said: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": "http://169.254.169.254/"}, text="secret")

    error = await fails(answer)
    assert (error.problem.code, error.problem.retryable) == ("HTTP_ERROR", retryable)
    assert said in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize("body", ["<html>", "[]", "{}", '{"results": 7}', '{"results": null}', ""])
async def test_an_answer_of_another_form_breaks_the_contract(body: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=body)

    assert (await fails(answer)).problem.code == "CONTRACT_VIOLATION"


async def test_endless_answer_is_aborted() -> None:
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            for _ in range(1000):
                await response.write(b" " * 65_536)
                sent += 65_536
        except ConnectionError:
            pass
        return response

    assert (await fails(answer)).problem.code == "RESULT_TOO_LARGE"
    assert sent < 60_000_000


async def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    async def answer(request: web.Request) -> web.Response:
        await anyio.sleep_forever()
        raise AssertionError

    assert (await fails(answer, timeout=0.1)).problem.code == "TIMEOUT"


async def test_a_server_that_is_not_there_is_a_network_error(free_port: int) -> None:
    with pytest.raises(ToolcribError) as caught:
        await ask(f"http://127.0.0.1:{free_port}")
    assert caught.value.problem.code == "NETWORK_ERROR"
