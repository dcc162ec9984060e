"""The operator API: status, explanations, calls, usage and keys."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.texts import matches
from toolcrib.config import parse
from toolcrib.errors import Refused
from toolcrib.model import Credential
from toolcrib.runtime import Runtime, build
from toolcrib.sdk import create_tool
from toolcrib.testing import a_caller

CONFIG = """
contexts:
  support: {tools: ["tools:*", "tools:gone"]}
  none: {tools: []}
overrides:
  "tools:*": {tags: [overridden]}
  "tools:secret": {hidden: true}
"""


@create_tool(category="query", permissions=["cards:read"])
async def find_card(text: str) -> dict[str, str]:
    """Finds a card by its text and returns it, for a test of what operators are told."""
    return {"text": text}


@create_tool(name="open-door")
async def open_door() -> dict[str, bool]:
    """Opens the door and returns whether it is open, for a test of what operators are told."""
    return {"open": True}


@create_tool(category="query", name="secret")
async def hidden_tool() -> str:
    """Is hidden by the operator and returns nothing of interest, for a test of explanations."""
    return "…"


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncGenerator[Runtime, None]:
    env = {"TOOLCRIB_HOME": str(tmp_path)}
    tools = (find_card, open_door, hidden_tool)
    async with build(parse(CONFIG, "toolcrib.yaml", env), env=env, tools=tools) as running:
        yield running


async def test_status_lists_servers_and_warnings(runtime: Runtime) -> None:
    status = runtime.console.status()
    assert status["tools"] == 10
    states = {each["id"]: each["state"] for each in status["sources"]}
    assert states == {"tools": "up", "local": "up", "crib": "up", "apps": "up"}
    assert any("tools:gone" in warning for warning in status["warnings"])
    assert status["contexts"] == ["default", "none", "support"]


@pytest.mark.requirement("F4")
async def test_explain_gives_verdict_and_steps(runtime: Runtime) -> None:
    console = runtime.console
    yes = console.explain("find_card", a_caller(permissions=frozenset({"cards:read"})))
    assert yes["visible"]
    assert yes["overrides"] == ["tools:*"]
    assert yes["steps"][0] == "record"
    no = console.explain("find-card", a_caller(), everything=True)
    assert "cards:read" in no["reason"]
    elsewhere = console.explain("find-card", a_caller(context="none"), everything=True)
    assert "none" in elsewhere["reason"]


async def test_explain_reports_missing_permission_like_the_call(runtime: Runtime) -> None:
    told = runtime.console.explain("find-card", a_caller())
    assert not told["visible"]
    assert "cards:read" in told["reason"]


async def test_hidden_tool_is_explained_to_operators_only(runtime: Runtime) -> None:
    assert matches(
        "apps",
        "hidden tool is explained to operators only",
        runtime.console.explain("tools:secret", a_caller())["reason"],
    )
    assert "hidden" in runtime.console.explain("tools:secret", a_caller(), everything=True)["reason"]
    assert runtime.console.explain("open-dor", a_caller())["near"] == ["tools:open-door"]


async def test_calls_and_usage_are_recorded(runtime: Runtime) -> None:
    caller = a_caller(id="key:one", permissions=frozenset({"*"}))
    await runtime.gateway.call("find-card", {"text": "x"}, caller)
    await runtime.gateway.call("find-card", {}, caller)
    await runtime.gateway.call("open-door", {}, a_caller(id="key:two"))
    calls = await runtime.console.calls()
    assert [(each["tool"], each["outcome"], each["code"]) for each in calls] == [
        ("tools:open-door", "success", None),
        ("tools:find-card", "error", "INVALID_ARGUMENTS"),
        ("tools:find-card", "success", None),
    ]
    assert [each["tool"] for each in await runtime.console.calls(caller="key:two")] == ["tools:open-door"]
    usage = (await runtime.console.usage())["tools"]
    assert (usage["tools:find-card"]["calls"], usage["tools:find-card"]["errors"]) == (2, 1)
    assert list((await runtime.console.usage(caller="key:two"))["tools"]) == ["tools:open-door"]
    assert b'toolcrib_tool_calls_total{tool="tools:find-card"' in runtime.console.metrics()


async def test_ready_answers_while_the_store_does(runtime: Runtime) -> None:
    assert (await runtime.console.ready())["sources"] == {
        "tools": "up",
        "local": "up",
        "crib": "up",
        "apps": "up",
    }


@pytest.mark.requirement("I1")
async def test_a_key_is_shown_once_rotated_and_revoked(runtime: Runtime) -> None:
    console, identity = runtime.console, runtime.identity
    made = await console.create_key("agent", contexts=["support"], home="support", act_as=True)
    assert "key" not in (await console.keys())[0]
    caller = identity.caller(Credential(authorization=f"Bearer {made['key']}", user="u1"))
    assert (caller.user, caller.context, caller.contexts) == ("u1", "support", {"support"})
    again = await console.rotate_key("agent")
    for key, lives in ((made["key"], False), (again["key"], True)):
        credential = Credential(authorization=f"Bearer {key}")
        if lives:
            identity.caller(credential)
        else:
            with pytest.raises(Refused):
                identity.caller(credential)
    await console.revoke_key("agent")
    with pytest.raises(Refused):
        identity.caller(Credential(authorization=f"Bearer {again['key']}"))


@pytest.mark.parametrize(
    "name,more,code",
    [
        ("agent", {}, "ALREADY_EXISTS"),
        ("", {}, "INVALID_REQUEST"),
        ("a b", {}, "INVALID_REQUEST"),
        ("x" * 65, {}, "INVALID_REQUEST"),
        ("b", {"permissions": ["cards"]}, "INVALID_REQUEST"),
        ("b", {"home": "nowhere"}, "NOT_FOUND"),
        ("b", {"contexts": ["nowhere"]}, "NOT_FOUND"),
        ("b", {"contexts": ["support"], "home": "default"}, "INVALID_REQUEST"),
    ],
)
async def test_a_key_that_cannot_be_is_refused(
    runtime: Runtime, name: str, more: dict[str, Any], code: str
) -> None:
    await runtime.console.create_key("agent")
    with pytest.raises(Refused) as refused:
        await runtime.console.create_key(name, **more)
    assert refused.value.problem.code == code


async def test_a_key_that_is_not_there_cannot_be_changed(runtime: Runtime) -> None:
    for change in (runtime.console.rotate_key, runtime.console.revoke_key):
        with pytest.raises(Refused) as refused:
            await change("nobody")
        assert refused.value.problem.code == "NOT_FOUND"
