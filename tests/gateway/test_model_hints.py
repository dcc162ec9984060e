"""Which hints a model sees: per provider and setting of its context, with tools as it names them."""

import json
from collections.abc import Sequence
from typing import Any, get_args

import pytest

from tests.contracts.dialogues import DIALOGUES
from tests.gateway.provider_client import ProviderClient, read, said
from toolcrib import hints
from toolcrib.errors import problem
from toolcrib.formats import PROVIDERS
from toolcrib.gateway.completion import HintCache
from toolcrib.model import Call, Hints, HintSetting, JsonObject, Result, Tool
from toolcrib.policy import Context
from toolcrib.testing import a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E6", "F10")]

SETTINGS: tuple[HintSetting, ...] = get_args(HintSetting)
NEXT: dict[str, Any] = {"tool": "cards:get-card", "arguments": {"card_id": "card_7"}}
WARNED = {"type": "conflict", "severity": "high", "message": "Two cards match."}
TOOLS = (
    a_tool("cards:search", category="query"),
    a_tool("cards:get-card", category="query"),
    a_tool("cards:hidden", permissions=frozenset({"a:b"})),
)


def advice(data: JsonObject | None, description: str = "Look at the card.") -> Hints:
    action = {"action": "look", "priority": "high", "description": description}
    actions = [] if data is None else [{**action, "data": data}]
    return hints.read({"confidence": 0.5, "suggestedNextActions": actions})


def outcome(kind: str) -> Result:
    """A result of each kind: a success or an error, with or without a call to suggest."""
    match kind:
        case "success with a call":
            return Result(data={"n": 1}, hints=advice(NEXT))
        case "success":
            return Result(data={"n": 1}, hints=advice(None))
        case "error with a repair":
            return Result(problem=problem("TOOL_FAILED", "No."), hints=advice({**NEXT, "repair": True}))
        case _:
            return Result(problem=problem("TOOL_FAILED", "No."), hints=advice(None))


OUTCOMES = ("success with a call", "success", "error with a repair", "error")


async def shown(
    format: str, setting: HintSetting, result: Result, *tools: Tool, style: str | None = None
) -> Any:
    """The hints in the reply to one call; None without any."""

    async def work(call: Call) -> Result:
        return result

    context = Context(hints=setting, style=style)
    client = ProviderClient(*(tools or TOOLS), work=work, contexts={"x": context})
    turn = await client.turn(said("call_1", "search"), format=format, caller=a_caller(context="x"))
    return hints_in(format, turn.messages)


def hints_in(format: str, messages: Sequence[JsonObject]) -> Any:
    (reply,) = read(format, messages)
    if format == "mcp":
        blocks = [each for each in reply.said["content"] if "annotations" in each]
        assert [each["annotations"] for each in blocks] == [{"audience": ["assistant"]}] * len(blocks)
        assert blocks == reply.said["content"][len(reply.said["content"]) - len(blocks) :]
        return blocks[0]["text"] if blocks else None
    payload: dict[str, Any] = json.loads(reply.said) if isinstance(reply.said, str) else reply.said
    # Gemini nests the payload under its outcome.
    inner: Any = payload.get("output" if "output" in payload else "error")
    return payload.get("hints") if "status" in payload else inner.get("hints")


@pytest.mark.parametrize("kind", OUTCOMES)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("format", PROVIDERS)
async def test_every_format_shows_what_the_setting_says(format: str, setting: HintSetting, kind: str) -> None:
    found = await shown(format, setting, outcome(kind))
    failed, actionable = kind.startswith("error"), "with" in kind
    visible = setting in ("brief", "full") or (setting == "errors" and failed)
    # The error says what the tool itself says; the general advice on its code is no use to a model.
    if not visible or not (actionable or (setting == "full" and format != "mcp")):
        assert found is None
        return
    whole = found if not isinstance(found, str) else json.loads(found) if setting == "full" else None
    if whole is None:
        assert found.endswith('get_card {"card_id":"card_7"}') is actionable
    else:
        assert whole.keys() >= {"suggestedNextActions", "confidence", "estimatedImpact"}
        named = [each["data"]["tool"] for each in whole["suggestedNextActions"] if "data" in each]
        assert named == ["get_card"] * actionable


@pytest.mark.parametrize("format", PROVIDERS)
@pytest.mark.parametrize("style, name", [(None, "get_card"), ("safe", "get_card"), ("flat", "get-card")])
async def test_tools_have_the_names_of_the_context(format: str, style: str | None, name: str) -> None:
    found = await shown(format, "brief", outcome("success with a call"), style=style)
    assert f'{name} {{"card_id"' in found


@pytest.mark.parametrize("format", PROVIDERS)
@pytest.mark.parametrize("setting", ["brief", "full"])
@pytest.mark.parametrize("target", ["cards:hidden", "cards:gone"])
async def test_tools_that_a_caller_cannot_use_are_not_named(
    format: str, setting: HintSetting, target: str
) -> None:
    result = Result(data=1, hints=advice({"tool": target, "arguments": {"card_id": "card_7"}}))
    found = await shown(format, setting, result)
    assert target not in str(found)
    assert "hidden" not in str(found)
    assert "card_7" not in str(found)


async def test_tools_that_a_format_cannot_declare_are_not_named() -> None:
    schema = {"type": "object", "properties": {"what for?": {"type": "string"}}, "required": ["what for?"]}
    odd = a_tool("cards:get-card", category="query", input_schema=schema)
    tools = (TOOLS[0], odd)
    suggested = Result(data={"n": 1}, hints=advice({"tool": odd.name, "arguments": {"what for?": "exam"}}))
    assert await shown("anthropic", "brief", suggested, *tools) is None
    assert await shown("openai_chat", "brief", suggested, *tools)


async def test_a_style_that_models_cannot_use_is_replaced() -> None:
    found = await shown("openai_chat", "brief", outcome("success with a call"), style="qualified")
    assert found.endswith('get_card {"card_id":"card_7"}')


@pytest.mark.requirement("G3")
@pytest.mark.parametrize("format", [name for name, each in PROVIDERS.items() if each.bounds.result_bytes])
@pytest.mark.parametrize("setting", ["brief", "full"])
async def test_hints_are_left_out_before_data_is_cut(format: str, setting: HintSetting) -> None:
    limit = PROVIDERS[format].bounds.result_bytes or 0
    room = 250 if format.startswith("gemini_live") else 200

    async def work(call: Call) -> Result:
        text = "x" * (limit - room)
        return Result(data=text, message=text if room == 250 else "Done.", hints=advice(NEXT, "y" * 900))

    long = {"tool": "cards:get-card", "arguments": {"card_id": "z" * 400}}

    async def longer(call: Call) -> Result:
        return (await work(call)).replace(hints=advice(long))

    for each in (work, longer) if setting == "full" else (longer,):
        client = ProviderClient(*TOOLS, work=each, contexts={"x": Context(hints=setting)})
        turn = await client.turn(said("call_1", "search"), format=format, caller=a_caller(context="x"))
        assert hints_in(format, turn.messages) is None
        (reply,) = DIALOGUES[format].replies([dict(message) for message in turn.messages])
        assert reply.size <= limit
        assert "truncated" not in str(reply.said)
        assert "x" * (limit - room) in str(reply.said)


async def test_warnings_and_what_is_missing_reach_the_model() -> None:
    given = hints.read({"confidence": 0.5, "warnings": [WARNED], "contextNeeded": ["the deck"]})
    found = await shown("anthropic", "brief", Result(data=1, hints=given))
    assert "Two cards match." in found
    assert "the deck" in found


@pytest.mark.parametrize("setting", SETTINGS)
async def test_hints_that_nobody_sees_are_not_generated(
    setting: HintSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []

    async def work(call: Call) -> Result:
        return Result(data=1) if call.arguments["works"] else Result(problem=problem("TOOL_FAILED", "No."))

    client = ProviderClient(*TOOLS, work=work, contexts={"x": Context(hints=setting)})
    generate = HintCache.hints

    def counted(cache: HintCache, *given: Any) -> Any:
        made.append(True)
        return generate(cache, *given)

    monkeypatch.setattr(HintCache, "hints", counted)
    for works in (True, False):
        await client.turn(said(f"call_{works}", "search", works=works), caller=a_caller(context="x"))
    assert len(made) == {"off": 0, "errors": 1, "brief": 2, "full": 2}[setting]
    made.clear()
    whole = await client.gateway.call("search", {"works": True}, a_caller(context="x"))
    assert whole.hints is not None
    assert made
