"""A reload is a difference: what it applies at once, what it leaves alone, and what it refuses."""

import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.runtime.servers import OPERATOR, call, ledger, listed, missing, put, running, write
from tests.waiting import until
from toolcrib.errors import Refused
from toolcrib.interfaces import ReloadPlan
from toolcrib.model import Actor, JsonObject
from toolcrib.observe import Redactor
from toolcrib.testing import a_caller

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("C5")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toolcrib.yaml"


async def test_nothing_changed_is_nothing_done(path: Path) -> None:
    write(path, {"books": ledger(path.parent)})
    async with running(path) as runtime:
        version = runtime.gateway.version
        pid = (await call(runtime, "books:pid")).data
        plan = await runtime.console.servers.config.reload()
        assert plan == ReloadPlan(untouched=("books",))
        assert runtime.console.catalog.snapshot.version == version
        assert (await call(runtime, "books:pid")).data == pid


async def test_reload_of_policies_keeps_servers_running(path: Path) -> None:
    write(path, {"books": ledger(path.parent)}, contexts={"few": {"tools": ["books:append"]}})
    async with running(path) as runtime:
        pid = (await call(runtime, "books:pid")).data
        few = runtime.gateway.enter(OPERATOR, "few")
        assert [tool.name for tool in runtime.gateway.tools(few)] == ["books:append"]
        write(
            path,
            {"books": ledger(path.parent)},
            contexts={"few": {"tools": ["books:pid"]}, "other": {}},
            overrides={"books:pid": {"category": "query", "description": "Tells which process answers."}},
        )
        plan = await runtime.console.servers.config.reload()
        assert (plan.untouched, set(plan.applied), plan.restart) == (
            ("books",),
            {"contexts", "overrides"},
            (),
        )
        (tool,) = runtime.gateway.tools(few)
        assert (tool.name, tool.category) == ("books:pid", "query")
        assert runtime.gateway.enter(OPERATOR, "other").context == "other"
        assert (await call(runtime, "books:pid")).data == pid
        explained = runtime.console.explain("books:pid", OPERATOR)
        assert "the override books:pid sets description, category" in explained["changes"]
        assert "its description is not the server's own" in explained["changes"]
        assert explained["origin"]["server_name"] == "ledger"


@pytest.mark.requirement("F10")
async def test_reload_applies_the_hints_of_a_context(path: Path) -> None:
    write(path, {}, contexts={"few": {}})
    async with running(path) as runtime:
        few = runtime.gateway.enter(OPERATOR, "few")
        assert runtime.gateway.hint_setting(few) == "errors"
        for setting in ("off", "errors", "brief", "full"):
            write(path, {}, contexts={"few": {"hints": setting}})
            await runtime.console.servers.config.reload()
            assert runtime.gateway.hint_setting(few) == setting
            explained = runtime.console.explain("get_datetime", few)
            assert explained["hints"] == setting
            assert explained["declarationTokens"] > 0


async def test_settings_needing_restart_are_reported_not_applied(path: Path) -> None:
    write(path, {})
    async with running(path) as runtime:
        write(path, {}, limits={"per_user": "5/min"}, auth={"mode": "trust_header"})
        plan = await runtime.console.servers.config.reload()
        assert set(plan.restart) == {"limits", "auth"}
        assert plan.applied == ()


async def test_disabled_server_returns_with_its_definitions(path: Path) -> None:
    write(path, {"books": ledger(path.parent)})
    async with running(path) as runtime:
        config = runtime.console.servers.config
        write(path, {"books": ledger(path.parent, enabled=False)})
        assert (await config.reload()).removed == ("books",)
        assert listed(runtime, "books") == {}
        assert runtime.console.servers.status()["servers"]["books"]["enabled"] is False
        await until(lambda: not runtime.console.supervisor.retiring())
        write(path, {"books": ledger(path.parent)})
        assert (await config.reload()).added == ("books",)
        assert not any(listed(runtime, "books").values())
        assert runtime.console.servers.pins() == []


async def test_a_call_in_flight_is_named_and_ends_where_it_began(path: Path) -> None:
    write(path, {"books": ledger(path.parent)})
    async with running(path) as runtime, anyio.create_task_group() as tasks:
        config, ends = runtime.console.servers.config, list[Any]()

        async def hold() -> None:
            ends.append(await call(runtime, "books:hold", op_id="held"))

        old = (await call(runtime, "books:pid")).data
        tasks.start_soon(hold)
        await until(lambda: bool(runtime.console.supervisor.in_flight("books")))
        (waiting,) = runtime.console.supervisor.in_flight("books")
        write(path, {"books": ledger(path.parent, env={"NEW": "1"})})
        dry = await config.reload(dry_run=True)
        assert (dry.changed, dry.deferred) == (("books",), {"books": (waiting,)})
        assert (await call(runtime, "books:pid")).data == old
        plan = await config.reload()
        assert (plan.changed, plan.deferred) == (("books",), {"books": (waiting,)})
        assert (await call(runtime, "books:pid")).data != old
        assert ends == []
        (path.parent / "release").touch()
        await until(lambda: bool(ends))
        assert ends[0].problem is None
        assert ends[0].data["pid"] == old["pid"]
        await until(lambda: not runtime.console.supervisor.retiring())


async def test_two_reloads_at_once_wait_for_each_other(path: Path) -> None:
    write(path, {})
    async with running(path) as runtime, anyio.create_task_group() as tasks:
        write(path, {"books": ledger(path.parent)})
        plans = list[ReloadPlan]()

        async def reload() -> None:
            plans.append(await runtime.console.servers.config.reload())

        tasks.start_soon(reload)
        tasks.start_soon(reload)
        await until(lambda: len(plans) == 2)
        assert [plan.added for plan in plans] == [("books",), ()]


async def test_faulty_file_is_reported_and_not_applied(path: Path) -> None:
    write(path, {"books": ledger(path.parent)})
    async with running(path) as runtime:
        put(path, "mcp:\n  servers:\n    books: {transport: telepathy}\n    more: {}\n")
        with pytest.raises(Refused) as refused:
            await runtime.console.servers.config.reload()
        faults = refused.value.problem.details["faults"]
        assert {fault["where"] for fault in faults} == {
            "mcp.servers.books.transport",
            "mcp.servers.more.transport",
        }
        assert {fault["line"] for fault in faults} == {3, 4}
        assert (await call(runtime, "books:pid")).problem is None


async def test_secrets_of_a_new_server_are_covered_from_then_on(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(path, {})
    redactor = Redactor()
    async with running(path, redactor) as runtime:
        write(path, {"books": ledger(path.parent, env={"TOKEN": "covered-from-now-on"})})
        await runtime.console.servers.config.reload()
        assert redactor.text("it says covered-from-now-on") == "it says [redacted]"
    assert "covered-from-now-on" not in caplog.text


@pytest.mark.requirement("B6")
async def test_missing_server_is_degraded_after_restart(path: Path) -> None:
    write(path, {"books": ledger(path.parent)})
    async with running(path) as runtime:
        tools = listed(runtime, "books")
        assert tools
        assert not any(tools.values())
    write(path, {"books": missing()})
    async with running(path) as runtime:
        assert listed(runtime, "books") == dict.fromkeys(tools, True)
        answer = await call(runtime, "books:pid")
        assert answer.problem is not None
        assert (answer.problem.code, answer.problem.retryable) == ("SOURCE_DOWN", True)
        assert answer.problem.retry_after is not None


@pytest.mark.requirement("C1")
async def test_a_lazy_server_is_asleep_until_it_is_called(path: Path) -> None:
    write(path, {"books": ledger(path.parent, start="lazy")})
    for _ in range(2):
        async with running(path) as runtime:
            await until(lambda: state(runtime) == "asleep")
            assert listed(runtime, "books")
    async with running(path) as runtime:
        assert state(runtime) == "asleep"
        assert not any(listed(runtime, "books").values())
        assert (await call(runtime, "books:pid")).problem is None
        assert state(runtime) == "up"


@pytest.mark.requirement("B6")
async def test_mcp_switched_off_starts_and_lists_none(path: Path) -> None:
    put(path, "mcp: {enabled: false, servers: {x: {transport: stdio, command: ['true']}}}")
    async with running(path) as runtime:
        status = runtime.console.servers.status()
        assert (status["enabled"], status["servers"]["x"]["state"]) == (False, "stopped")
        assert (await runtime.console.servers.test("x"))["ok"] is False


@pytest.mark.requirement("C5")
async def test_saving_the_file_reloads_if_configured(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    write(path, {}, reload={"watch": True})
    async with running(path) as runtime:
        write(path, {"books": ledger(path.parent)}, reload={"watch": True})
        await until(lambda: bool(listed(runtime, "books")))
        put(path, "mcp: [")
        await until(lambda: "was changed, but the config is refused" in caplog.text)
        await anyio.Path(path).unlink()
        assert (await call(runtime, "books:pid")).problem is None
        write(path, {}, reload={"watch": True})
        await until(lambda: not listed(runtime, "books"))


def state(runtime: Any) -> str:
    return next(each.state for each in runtime.console.supervisor.states() if each.id == "books")


@pytest.mark.requirement("I5")
async def test_allow_private_reaches_apps_and_servers_by_reload(path: Path) -> None:
    """Before, only servers learned of it, though the plan named it as applied."""
    developer = Actor.of(a_caller(key="dev", permissions=frozenset({"crib:*"})), "rest")
    web: JsonObject = {"transport": "http", "url": "http://127.0.0.1:9/mcp", "start": "lazy"}
    app = {"name": "Notes", "publicUrl": "http://127.0.0.1:9"}
    write(path, {})
    async with running(path) as runtime:
        console = runtime.console

        async def codes() -> list[str]:
            found: list[str] = []
            for add in (
                console.servers.add("web", web, actor=developer),
                console.apps.put("com.example.notes", app, developer),
            ):
                try:
                    await add
                except Refused as error:
                    found.append(error.problem.code)
            return found

        assert await codes() == ["PERMISSION_DENIED", "INVALID_REQUEST"]
        write(path, {}, allow_private=["127.0.0.0/8"])
        assert (await console.servers.config.reload()).applied == ("allow_private",)
        assert await codes() == []
