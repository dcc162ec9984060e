"""A reload under a hundred running calls: none lost, none doubled, and who was not meant notices nothing."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.gateway_process import gateway_process
from tests.servers.client import Answer, Client, client, until
from tests.servers.ledger import RELEASE, executions
from tests.servers.settings import config, ledger

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("C5")]

CALLS = 20
"""To each of the five servers."""
PATIENT = {"defaults": {"timeout_ms": 60000}}
UNTOUCHED = ("three", "four", "five")
BEFORE = ("one", "two", *UNTOUCHED)


class Flight:
    """A hundred calls that wait for a file, over five servers."""

    def __init__(self, crib: Client, books: Path) -> None:
        self.crib, self.books = crib, books
        self.answers: dict[str, Answer] = {}
        self.wanted = {f"{server}-{number}": server for server in BEFORE for number in range(CALLS)}

    async def call(self, operation: str, server: str) -> None:
        self.answers[operation] = await self.crib.call(f"{server}:hold", {"op_id": operation})

    async def begun(self) -> bool:
        return len(executions(self.books)) == len(self.wanted)

    def release(self) -> None:
        (self.books / RELEASE).touch()


async def pids(crib: Client, *servers: str) -> dict[str, int]:
    return {server: (await crib.answering(f"{server}:pid")).data["pid"] for server in servers}


def settings(books: Path, *servers: str) -> dict[str, Any]:
    return {server: ledger(books, **PATIENT) for server in servers}


def text_after(books: Path) -> str:
    after = settings(books, "two", *UNTOUCHED, "six")
    after["two"]["env"] = {"CHANGED": "yes"}
    return config(after)


def judge_plan(plan: Any) -> None:
    assert sorted(plan["added"]) == ["six"]
    assert sorted(plan["removed"]) == ["one"]
    assert sorted(plan["changed"]) == ["two"]
    assert sorted(plan["untouched"]) == sorted(UNTOUCHED)
    assert {server: len(calls) for server, calls in plan["deferred"].items()} == {"one": CALLS, "two": CALLS}
    assert len({call for calls in plan["deferred"].values() for call in calls}) == 2 * CALLS


async def test_a_reload_disturbs_no_running_call(tmp_path: Path) -> None:
    books = tmp_path / "books"
    text = config(settings(books, *BEFORE))
    async with gateway_process(tmp_path, text, demo=False) as gateway, client(gateway) as crib:
        old = await pids(crib, *BEFORE)
        new: dict[str, int] = {}
        flight = Flight(crib, books)
        async with anyio.create_task_group() as tasks:
            for operation, server in flight.wanted.items():
                tasks.start_soon(flight.call, operation, server)
            await until(flight.begun)
            await anyio.Path(tmp_path / "toolcrib.yaml").write_text(text_after(books))
            status, plan = await crib.post("/reload")
            assert status == 200, plan
            judge_plan(plan)
            assert flight.answers == {}
            assert (await crib.call("one:pid")).code == "TOOL_NOT_FOUND"
            new = await pids(crib, "six", *UNTOUCHED)
            flight.release()
        assert {name: answer.code for name, answer in flight.answers.items() if answer.status != 200} == {}
        assert executions(books) == dict.fromkeys(flight.wanted, 1)
        assert {server: new[server] for server in UNTOUCHED} == {server: old[server] for server in UNTOUCHED}

        async def replaced() -> bool:
            return (await pids(crib, "two"))["two"] != old["two"]

        await until(replaced)
        assert "one" not in await crib.servers()
        assert await pids(crib, *UNTOUCHED) == {server: old[server] for server in UNTOUCHED}


async def test_a_dry_run_and_a_bad_config_touch_nothing(tmp_path: Path) -> None:
    books = tmp_path / "books"
    text = config(settings(books, "one", "two"))
    async with gateway_process(tmp_path, text, demo=False) as gateway, client(gateway) as crib:
        old = await pids(crib, "one", "two")
        await anyio.Path(tmp_path / "toolcrib.yaml").write_text(text_after(books))
        status, plan = await crib.post("/reload?dry_run=true")
        assert status == 200, plan
        assert (plan["removed"], plan["changed"]) == (["one"], ["two"])
        bad = settings(books, "six")
        bad["seven"] = {"transport": "carrier pigeon"}
        await anyio.Path(tmp_path / "toolcrib.yaml").write_text(config(bad))
        status, body = await crib.post("/reload")
        assert status == 400
        assert "seven" in body["error"]["message"]
        assert set(await crib.servers()) == {"one", "two"}
        assert await pids(crib, "one", "two") == old
