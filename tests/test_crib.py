"""The library's front: the whole gateway inside a program, without a server."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from tests.texts import matches
from toolcrib import BusinessRuleError, Crib, Registry, ToolContext, __version__, create_tool
from toolcrib.config import ConfigError, parse
from toolcrib.errors import Refused
from toolcrib.model import Progress
from toolcrib.sdk import AnyTool


@create_tool(category="query", permissions=["cards:read"], tags=["cards"])
async def get_card(card_id: str) -> dict[str, str]:
    """Look up one card by its id and return its title."""
    if card_id == "gone":
        raise BusinessRuleError("NO_SUCH_CARD", "there is no such card")
    return {"card_id": card_id}


@create_tool(category="query", tags=["cards"])
async def count_cards(ctx: ToolContext) -> dict[str, str | None]:
    """Count the cards, reporting progress twice."""
    await ctx.report(1, 2, "half")
    await ctx.report(2, 2)
    return {"user": ctx.user_id, "agent": ctx.agent_id}


TOOLS: tuple[AnyTool, ...] = (get_card, count_cards)

MODULE = """
from toolcrib import create_tool

@create_tool
async def say_hi() -> str:
    '''Says hi.'''
    return "hi"
"""


async def _files(folder: Path) -> list[str]:
    return sorted([each.name async for each in anyio.Path(folder).iterdir()])


@pytest.mark.requirement("B1")
async def test_tools_of_the_program_are_called_by_any_name() -> None:
    async with Crib(tools=TOOLS) as crib:
        for name in ("get-card", "get_card", "tools:get-card"):
            result = await crib.call(name, {"card_id": "c1"})
            assert (result.problem, result.data) == (None, {"card_id": "c1"})


async def test_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with Crib(tools=TOOLS) as crib:
        assert (await crib.call("get-card", {"card_id": "c1"})).problem is None
    assert await _files(tmp_path) == []


async def test_lists_are_rendered_per_provider() -> None:
    async with Crib(tools=TOOLS) as crib:
        rest = [each["name"] for each in crib.tools()]
        assert rest[:2] == ["tools:get-card", "tools:count-cards"]
        assert [each["name"] for each in crib.tools(format="mcp")][:2] == ["get_card", "count_cards"]
        assert crib.tools(style="flat")[0]["name"] == "get-card"
        assert [each["name"] for each in crib.tools(search="count progress")] == ["tools:count-cards"]
        with pytest.raises(Refused) as raised:
            crib.tools(format="morse")
        assert matches("library", "lists are rendered per provider", str(raised.value))
        with pytest.raises(Refused) as raised:
            crib.tools(format="mcp", style="qualified")


@pytest.mark.requirement("A2", "F4")
async def test_context_decides_listing_calling_and_naming(tmp_path: Path) -> None:
    env = {"TOOLCRIB_HOME": str(tmp_path)}
    document = parse("contexts: {few: {tools: [get_datetime], style: safe}}", "toolcrib.yaml", env)
    async with Crib(TOOLS, document=document, env=env) as crib:
        assert [each["name"] for each in crib.tools(context="few")] == ["get_datetime"]
        hidden = await crib.call("get-card", {"card_id": "c1"}, context="few")
        assert hidden.problem is not None
        assert hidden.problem.code == "TOOL_NOT_FOUND"
        assert crib.explain("get-card", context="few")["visible"] is False
        assert crib.explain("get-card")["visible"] is True
        nowhere = await crib.call("get-card", context="nowhere")
        assert nowhere.problem is not None
        assert (nowhere.problem.code, nowhere.problem.path) == ("NOT_FOUND", "context")
        with pytest.raises(Refused) as raised:
            crib.tools(context="nowhere")
        assert matches("library", "context decides listing calling and naming", str(raised.value))
        with pytest.raises(Refused):
            crib.explain("get-card", context="nowhere")


@pytest.mark.requirement("D14", "E5")
async def test_progress_reaches_sync_and_async_listeners() -> None:
    heard: list[Progress] = []

    async def listen(progress: Progress) -> None:
        heard.append(progress)

    async with Crib(tools=TOOLS) as crib:
        result = await crib.call("count-cards", user="u1", on_progress=heard.append)
        assert result.data == {"user": "u1", "agent": "library"}
        assert [(each.done, each.message) for each in heard] == [(1, "half"), (2, None)]
        heard.clear()
        assert (await crib.call("count-cards", on_progress=listen)).data == {"user": None, "agent": "library"}
        assert len(heard) == 2


@pytest.mark.requirement("E11")
async def test_errors_are_in_the_result() -> None:
    async with Crib(tools=TOOLS) as crib:
        ruled = await crib.call("get-card", {"card_id": "gone"})
        assert ruled.problem is not None
        assert (ruled.problem.code, ruled.problem.tool_code) == ("TOOL_FAILED", "NO_SUCH_CARD")
        wrong = await crib.call("get-card")
        assert wrong.problem is not None
        assert wrong.problem.code == "INVALID_ARGUMENTS"
        deep: dict[str, object] = {}
        for _ in range(1000):
            deep = {"deeper": deep}
        buried = await crib.call("get-card", deep)
        assert buried.problem is not None
        assert (buried.problem.code, buried.problem.path) == ("INVALID_ARGUMENTS", "arguments")


async def test_a_deadline_ends_a_call() -> None:
    async with Crib(demo=True) as crib:
        slow = await crib.call("slow-countdown", {"seconds": 20}, timeout=0.02)
        assert slow.problem is not None
        assert slow.problem.kind in ("timeout", "unknown")


async def test_config_file_and_stored_state(tmp_path: Path) -> None:
    env = {"TOOLCRIB_HOME": str(tmp_path / "home")}
    (tmp_path / "crib_config_tools.py").write_text(MODULE)
    (tmp_path / "toolcrib.yaml").write_text("functions: [crib_config_tools]")
    async with Crib.from_config(tmp_path / "toolcrib.yaml", env=env) as crib:
        assert (await crib.call("say-hi")).data == "hi"
        made = await crib.runtime.console.create_key("ci")
    assert await _files(tmp_path / "home") == ["toolcrib.db"]
    async with Crib.from_config(str(tmp_path / "toolcrib.yaml"), env=env) as crib:
        assert [key["name"] for key in await crib.runtime.console.keys()] == [made["name"]]


def test_a_bad_config_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("servr: {}")
    with pytest.raises(ConfigError) as raised:
        Crib.from_config(tmp_path / "toolcrib.yaml")
    assert matches("library", "a bad config is refused before anything runs", str(raised.value))


async def test_it_is_open_only_inside_its_block() -> None:
    crib = Crib(tools=TOOLS)
    with pytest.raises(RuntimeError, match="async with"):
        crib.tools()
    async with crib:
        assert crib.tools()
    with pytest.raises(RuntimeError, match="async with"):
        crib.tools()
    await crib.__aexit__(None, None, None)


async def test_exception_of_block_is_not_wrapped() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with Crib():
            raise KeyError("mine")


def test_the_public_names() -> None:
    assert __version__ == metadata.version("toolcrib")
    registry = Registry()
    registry.register(get_card)
    assert registry.get("get-card") is get_card


@pytest.mark.requirement("E12")
async def test_a_change_made_twice_under_one_key_is_made_once() -> None:
    made: list[str] = []

    @create_tool(category="mutation")
    async def make_card(title: str) -> int:
        """Make a card."""
        made.append(title)
        return len(made)

    async with Crib(tools=(make_card,)) as crib:
        first = await crib.call("make-card", {"title": "a"}, idempotency_key="k")
        again = await crib.call("make-card", {"title": "a"}, idempotency_key="k")
        other = await crib.call("make-card", {"title": "b"}, idempotency_key="k")
        wrong = await crib.call("make-card", {"title": "c"}, idempotency_key="no key")
    assert (first.data, again.data, made) == (1, 1, ["a"])
    assert other.problem is not None
    assert other.problem.code == "IDEMPOTENCY_MISMATCH"
    assert wrong.problem is not None
    assert (wrong.problem.code, wrong.problem.path) == ("INVALID_REQUEST", "idempotency_key")


@pytest.mark.requirement("E12")
async def test_mutated_answer_does_not_affect_others() -> None:
    @create_tool(category="query", cache_ttl=60)
    def list_numbers() -> dict[str, list[int]]:
        """List some numbers."""
        return {"numbers": [1]}

    async with Crib(tools=[list_numbers]) as crib:
        for again in (False, True, True):
            answer = await crib.call("list-numbers")
            assert (answer.data, answer.cached) == ({"numbers": [1]}, again)
            answer.data["numbers"].append(2)


@pytest.mark.parametrize("format", ["rest", "mcp", "openai_chat", "gemini"])
async def test_a_list_is_the_programs_own(format: str) -> None:
    async with Crib(tools=TOOLS) as crib:
        before = json.dumps(crib.tools(format=format))
        for each in crib.tools(format=format):
            _spoil(each)
        assert json.dumps(crib.tools(format=format)) == before


def _spoil(value: Any) -> None:
    """Take everything out of everything."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        for each in held.values():
            _spoil(each)
        held.clear()
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        for each in items:
            _spoil(each)
        items.clear()
