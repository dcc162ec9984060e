"""From document to running gateway: the step order, what outlives a restart, who is loaded."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from toolcrib.config import ConfigError, load, parse
from toolcrib.errors import Refused
from toolcrib.model import Credential
from toolcrib.runtime import Runtime, build
from toolcrib.sdk import AnyTool, create_tool
from toolcrib.sources.functions import ModuleProblem
from toolcrib.store import open_store
from toolcrib.testing import a_caller


@create_tool(category="query", tags=["test"])
async def repeat(text: str) -> dict[str, str]:
    """Gives back the text it was given, so that a test can see that arguments arrive intact."""
    return {"text": text}


@asynccontextmanager
async def open_runtime(
    home: Path, text: str = "", tools: tuple[AnyTool, ...] = (repeat,)
) -> AsyncGenerator[Runtime, None]:
    env = {"TOOLCRIB_HOME": str(home)}
    async with build(parse(text, "toolcrib.yaml", env), env=env, tools=tools) as running:
        yield running


STEPS = (
    "record recover deadline limit validate replay shape cache spend announce verify retry "
    "breaker activate bulkhead begin attempt"
)


async def test_the_step_order_is_the_one_the_documentation_draws(tmp_path: Path) -> None:
    async with open_runtime(tmp_path) as running:
        steps = running.console.steps
    assert " ".join(type(step).__name__.lower() for step in steps) == STEPS
    drawn = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    assert " → ".join(STEPS.split()) in drawn


@pytest.mark.requirement("B1")
async def test_tools_of_the_program_and_the_ready_made_ones_are_served(tmp_path: Path) -> None:
    async with open_runtime(tmp_path) as running:
        names = [tool.name for tool in running.gateway.tools(a_caller())]
        ready = ["local:get-datetime", "local:control-volume", "local:search-web", "crib:search_tools"]
        assert names == ["tools:repeat", *ready]
        result = await running.gateway.call("repeat", {"text": "as is"}, a_caller())
        assert result.data == {"text": "as is"}


@pytest.mark.requirement("A3", "A4")
async def test_name_claims_outlive_a_restart(tmp_path: Path) -> None:
    async with open_runtime(tmp_path) as running:
        assert "repeat" in [tool.exposed for tool in running.gateway.tools(a_caller())]
        await running.console.journal.flush()
    store = await open_store(f"sqlite:///{tmp_path}/toolcrib.db")
    claims = await store.claims.all()
    await store.close()
    assert claims["repeat"] == "tools:repeat"
    assert claims["get_datetime"] == "local:get-datetime"


@pytest.mark.requirement("I7")
async def test_the_overlay_is_merged_after_the_file_and_the_file_wins(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/toolcrib.db")
    overlay: dict[str, Any] = {
        "overrides": {"local:*": {"hidden": True}, "tools:repeat": {"tags": ["overlay"]}},
        "contexts": {"more": {"tools": ["tools:*"]}},
    }
    await store.overlay.save(overlay, expected=0)
    await store.close()
    path = tmp_path / "toolcrib.yaml"
    path.write_text("overrides: {'tools:repeat': {tags: [file]}}\n")
    env = {"TOOLCRIB_HOME": str(tmp_path)}
    async with build(load(path, env=env), env=env, tools=(repeat,)) as running:
        served, search = running.gateway.tools(a_caller())
        assert search.name == "crib:search_tools"
        assert (served.name, served.tags) == ("tools:repeat", ("file",))
        assert running.gateway.enter(a_caller(), "more").context == "more"


async def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModuleProblem, match="no_such_module"):
        async with open_runtime(tmp_path, "functions: [no_such_module.tools]"):
            pass


async def test_functions_are_found_beside_the_config_file(tmp_path: Path) -> None:
    (tmp_path / "own_words.py").write_text(
        "from toolcrib import create_tool\n\n@create_tool(category='query')\ndef shout(text: str) -> str:\n"
        "    '''Returns the text in capitals, for a test of where modules are looked for.'''\n"
        "    return text.upper()\n"
    )
    path = tmp_path / "toolcrib.yaml"
    path.write_text("functions: [own_words]\n")
    env = {"TOOLCRIB_HOME": str(tmp_path / "state")}
    async with build(load(path, env=env), env=env) as running:
        result = await running.gateway.call("own_words:shout", {"text": "hey"}, a_caller())
        assert (result.data, result.message) == ("HEY", "HEY")


async def test_exception_of_block_is_not_wrapped(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_runtime(tmp_path):
            raise ZeroDivisionError


async def test_a_bad_document_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        async with open_runtime(tmp_path, "nonsense: true"):
            pass
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a test may wait for its own disk


@pytest.mark.requirement("I1")
async def test_keys_made_in_one_run_hold_in_the_next(tmp_path: Path) -> None:
    async with open_runtime(tmp_path) as running:
        made = await running.console.create_key("agent", permissions=["a:b"])
        other = await running.console.create_key("gone")
        await running.console.revoke_key("gone")
    async with open_runtime(tmp_path) as running:
        caller = running.identity.caller(Credential(authorization=f"Bearer {made['key']}"))
        assert (caller.id, caller.permissions) == ("key:agent", {"a:b"})
        with pytest.raises(Refused):
            running.identity.caller(Credential(authorization=f"Bearer {other['key']}"))


@pytest.mark.requirement("I1")
async def test_the_admin_key_is_the_given_one_or_the_kept_one(tmp_path: Path) -> None:
    async with open_runtime(tmp_path) as running:
        kept = await anyio.Path(tmp_path / "admin.key").read_text()
        bearer = Credential(authorization=f"Bearer {kept.strip()}")
        assert running.identity.caller(bearer).id == "admin"
    given = "a-key-that-the-operator-has-given-here"
    async with open_runtime(tmp_path, f"auth: {{admin_key: {given}}}") as running:
        assert running.identity.caller(Credential(authorization=f"Bearer {given}")).id == "admin"
        with pytest.raises(Refused):
            running.identity.caller(bearer)


@pytest.mark.slow
@pytest.mark.requirement("I1")
@pytest.mark.check(7)
async def test_key_changes_of_other_process_apply_within_seconds(tmp_path: Path) -> None:
    def known(running: Runtime, key: str) -> bool:
        try:
            running.identity.caller(Credential(authorization=f"Bearer {key}"))
        except Refused:
            return False
        return True

    async with open_runtime(tmp_path) as one, open_runtime(tmp_path) as other:
        key = (await other.console.create_key("agent"))["key"]
        await _until(lambda: known(one, key))
        await other.console.revoke_key("agent")
        await _until(lambda: not known(one, key))


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - what another process does gives no event to wait for
            await anyio.sleep(0.05)
