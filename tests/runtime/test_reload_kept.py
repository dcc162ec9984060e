"""What a reload must not lose: what still waits for a restart, servers, names, what was approved."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.runtime.servers import call, ledger, listed, put, running, write
from tests.runtime.test_reload import state
from tests.texts import matches
from tests.waiting import until
from toolcrib.config import default_document, load, reread
from toolcrib.config.mcp import McpSection, McpServer
from toolcrib.config.sections import ContextSection, OverrideSection
from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import ReloadPlan, StoredDefinition
from toolcrib.runtime.reload import POLL_SECONDS, watch
from toolcrib.server import hung_up
from toolcrib.store.sql.definitions import SqlDefinitions
from toolcrib.store.sql.overlay import SqlOverlay

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("C5")]

WEB = {"transport": "http", "url": "http://127.0.0.1:9/mcp"}

MODULE = """
from toolcrib import create_tool

@create_tool(category="query")
async def sunrise() -> str:
    \"\"\"Tells when the sun rises.\"\"\"
    return "at six"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toolcrib.yaml"


async def test_pending_restart_is_reported_until_done_or_reverted(path: Path) -> None:
    write(path, {})
    async with running(path) as runtime:
        config = runtime.console.servers.config
        write(path, {}, limits={"per_user": "5/min"})
        for _ in range(2):
            assert (await config.reload()).restart == ("limits",)
        write(path, {})
        assert (await config.reload()).restart == ()


async def test_a_store_that_fails_keeps_no_server_from_the_next_reload(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: SqlDefinitions) -> tuple[StoredDefinition, ...]:
        raise Unavailable("SOURCE_DOWN", "the store does not answer")

    write(path, {})
    async with running(path) as runtime:
        config = runtime.console.servers.config
        write(path, {"books": ledger(path.parent)})
        with monkeypatch.context() as patch:
            patch.setattr(SqlDefinitions, "all", fail)
            with pytest.raises(Unavailable):
                await config.reload()
            with pytest.raises(Unavailable):
                await runtime.console.servers.add("web", WEB)
        assert config.servers() == {}
        assert await runtime.console.store.overlay.load() == (0, {})
        assert (await config.reload()).added == ("books",)
        assert (await call(runtime, "books:pid")).problem is None


async def test_stored_reload_applies_after_caller_disconnects(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, {})
    async with running(path) as runtime:
        save = SqlOverlay.save
        with anyio.CancelScope() as asking:

            async def leave(self: SqlOverlay, document: Any, *, expected: int) -> int | None:
                saved = await save(self, document, expected=expected)
                asking.cancel()
                await anyio.lowlevel.checkpoint()
                return saved

            monkeypatch.setattr(SqlOverlay, "save", leave)
            await runtime.console.servers.add("web", WEB)
        assert asking.cancelled_caught
        assert list(runtime.console.servers.config.servers()) == ["web"]
        assert "web" in {each.id for each in runtime.console.supervisor.states()}


async def test_concurrent_adds_of_one_name_conflict(path: Path) -> None:
    write(path, {})
    async with running(path) as runtime, anyio.create_task_group() as tasks:
        codes = list[str]()

        async def add(port: int) -> None:
            try:
                web = {**WEB, "url": f"http://127.0.0.1:{port}/mcp"}
                await runtime.console.servers.add("web", web)
                codes.append("")
            except Refused as error:
                codes.append(error.problem.code)

        tasks.start_soon(add, 1)
        tasks.start_soon(add, 2)
        await until(lambda: len(codes) == 2)
        assert sorted(codes) == ["", "ALREADY_EXISTS"]


async def test_forbidden_server_does_not_block_other_changes(path: Path) -> None:
    put(path, "mcp: {allow_stdio: true}")
    async with running(path) as runtime:
        servers = runtime.console.servers
        await servers.add("books", ledger(path.parent))
        await servers.add("web", WEB)
        put(path, "mcp: {allow_stdio: false}")
        assert (await servers.remove("web"))["removed"] == ("books", "web")
        assert "mcp.allow_stdio" in servers.status()["servers"]["books"]["last_error"]
        assert (await servers.remove("books"))["removed"] == ()


@pytest.mark.requirement("C1")
async def test_a_reload_starts_one_that_has_died_for_good(path: Path) -> None:
    write(path, {"books": ledger(path.parent, restart={"enabled": False})})
    async with running(path) as runtime:
        config = runtime.console.servers.config
        await call(runtime, "books:crash")
        await until(lambda: state(runtime) == "stopped")
        await runtime.console.servers.add("web", WEB)
        assert state(runtime) == "stopped"
        assert (await config.reload(dry_run=True)).changed == ("books",)
        assert state(runtime) == "stopped"
        plan = await config.reload()
        assert (plan.changed, plan.untouched) == (("books",), ("web",))
        assert (await call(runtime, "books:pid")).problem is None
        assert (await config.reload()).untouched == ("books", "web")


@pytest.mark.requirement("I5")
async def test_a_server_that_is_taken_out_is_forgotten_whole(path: Path) -> None:
    write(path, {"books": ledger(path.parent)})
    async with running(path) as runtime:
        write(path, {})
        await runtime.console.servers.config.reload()
    async with running(path) as runtime:
        assert not await runtime.console.store.definitions.all()


async def test_server_cannot_replace_running_module(path: Path) -> None:
    put(path.parent / "almanac.py", MODULE)
    put(path, "functions: [almanac]")
    async with running(path) as runtime:
        write(path, {"almanac": ledger(path.parent)})
        with pytest.raises(Refused) as refused:
            await runtime.console.servers.config.reload()
        assert matches("server", "server cannot replace running module", str(refused.value))
        assert (await call(runtime, "almanac:sunrise")).data == "at six"


async def test_another_pin_is_part_of_the_plan(path: Path) -> None:
    write(path, {"books": ledger(path.parent, pin="off")})
    async with running(path) as runtime:
        write(path, {"books": ledger(path.parent, pin="strict")})
        plan = await runtime.console.servers.config.reload()
        assert plan == ReloadPlan(untouched=("books",), applied=("pins",))


async def test_watch_waits_for_writes_and_reads_early_changes(
    path: Path,
) -> None:
    write(path, {"books": ledger(path.parent)})
    async with running(path) as runtime, anyio.create_task_group() as tasks:
        pid = (await call(runtime, "books:pid")).data
        put(path, "")
        tasks.start_soon(watch, path, runtime.console.servers.reload)
        await anyio.sleep(3 * POLL_SECONDS)  # no event signals that nothing happens
        write(path, {"books": ledger(path.parent), "web": WEB})
        await until(lambda: "web" in runtime.console.servers.config.servers())
        assert (await call(runtime, "books:pid")).data == pid
        tasks.cancel_scope.cancel()
    async with running(path) as runtime, anyio.create_task_group() as tasks:
        write(path, {})
        tasks.start_soon(watch, path, runtime.console.servers.reload)
        await until(lambda: not listed(runtime, "books"))
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("I5")
async def test_looking_with_another_config_forgets_nothing(path: Path) -> None:
    write(path, {"books": ledger(path.parent, pin="strict")})
    async with running(path) as runtime:
        assert listed(runtime, "books")
    other = path.parent / "other.yaml"
    put(other, "{}")
    async with running(other) as runtime:
        assert load(other, env={}).mcp.servers == {}
    async with running(path) as runtime:
        known = await runtime.console.store.definitions.all()
        assert {each.name for each in known} >= {"books:append", "books:pid"}


@pytest.mark.parametrize("by_signal", [True, False])
async def test_unexpected_reload_error_keeps_gateway_running(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, by_signal: bool
) -> None:
    async def fail(_: SqlOverlay) -> tuple[int, Any]:
        raise RuntimeError("nobody foresaw this")

    write(path, {"books": ledger(path.parent)})
    async with running(path) as runtime, anyio.create_task_group() as tasks:
        monkeypatch.setattr(SqlOverlay, "load", fail)
        if by_signal:
            tasks.start_soon(hung_up, runtime)
        else:
            tasks.start_soon(watch, path, runtime.console.servers.reload)
        await until(lambda: "the reload failed unexpectedly" in caplog.text)
        assert (await call(runtime, "books:pid")).problem is None
        tasks.cancel_scope.cancel()


def test_manual_document_is_unchanged_by_overlay() -> None:
    made = replace(
        default_document({}),
        contexts={"default": ContextSection(tools=("local:*",))},
        overrides={"local:*": OverrideSection(permissions=frozenset({"a:b"}))},
        pins={"x:y": "0" * 64},
        mcp=McpSection(allow_stdio=True, servers={"first": McpServer(transport="http", url="http://h/mcp")}),
    )
    read = reread(made, env={}, overlay={"mcp": {"servers": {"web": WEB}}, "contexts": {"default": {}}})
    assert (read.contexts, read.overrides, read.pins) == (made.contexts, made.overrides, made.pins)
    assert (list(read.mcp.servers), read.mcp.allow_stdio) == (["first", "web"], True)
    assert read.added == {"web"}
