"""Callers that can be asked have connections of their own, which come on demand and leave nothing behind."""

import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.simulated_clock import simulated_clock
from tests.sources.mcp.census import Census, census
from tests.sources.mcp.recording_channel import FORM, RecordingChannel, never, said
from tests.sources.mcp.scripted_connection import RecordingLink, ScriptedConnection, legacy, listed
from tests.texts import matches
from tests.waiting import until
from toolcrib.config.mcp import McpServer
from toolcrib.errors import Lost, Refused, Unavailable
from toolcrib.model import Call, JsonObject, Result
from toolcrib.runtime.convert import settings_of
from toolcrib.sources.mcp.connection import McpSettings
from toolcrib.sources.mcp.server_process import STOP_STEPS
from toolcrib.sources.mcp.source import McpSource
from toolcrib.sources.mcp.stdio_transport import StdioTransport
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CURIOUS = (sys.executable, "-S", str(Path(__file__).with_name("curious.py")))
IGNORES_SIGTERM = """
import runpy, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
runpy.run_path(sys.argv[-1], run_name="__main__")
while True:
    signal.pause()
"""
"""Runs the server of its last argument, and stays when the server's input ends."""
STUBBORN = (sys.executable, "-S", "-c", IGNORES_SIGTERM, CURIOUS[-1])
ELICIT: JsonObject = {"method": "elicitation/create", "params": FORM}
FORMS: JsonObject = {"elicitation": {}}


@pytest.fixture
def counted() -> Generator[Census]:
    with census() as counted:
        yield counted


class RunningSource:
    """A running source over the curious server."""

    def __init__(
        self,
        counted: Census,
        env: dict[str, str] | None = None,
        *,
        command: tuple[str, ...] = CURIOUS,
        patience: float = 2.0,
        **settings: Any,
    ) -> None:
        stdio = StdioTransport(command=command, env={**counted.env, **(env or {})}, patience=patience)
        self.source = McpSource(McpSettings(id="curious", **settings), stdio.dial)
        self.link = RecordingLink()
        self._counted = counted

    async def call(self, tool: str, channel: RecordingChannel | None = None, **arguments: Any) -> Result:
        return await self.source.call(self.a_call(tool, channel, **arguments))

    def a_call(self, tool: str, channel: RecordingChannel | None = None, **arguments: Any) -> Call:
        named = a_tool(f"curious:{tool}", family="mcp", timeout=20.0)
        return a_call(named, arguments=arguments, channel=channel)

    @property
    def lanes(self) -> int:
        return self.source.details().get("lanes", 0)

    def servers(self) -> int:
        """How many of its processes there are; each has a guard beside it."""
        return len(self._counted.alive())


@asynccontextmanager
async def running_source(counted: Census, **settings: Any) -> AsyncGenerator[RunningSource]:
    it = RunningSource(counted, **settings)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(it.source.run, it.link)
        await until(lambda: bool(it.link.offers))
        yield it
        tasks.cancel_scope.cancel()
    assert counted.alive() == []


async def client(it: RunningSource, channel: RecordingChannel | None = None) -> Any:
    return said(await it.call("about", channel))


@pytest.mark.requirement("D14")
async def test_server_sees_exactly_the_declared_capabilities(counted: Census) -> None:
    capabilities: JsonObject = {
        "elicitation": {"url": {}},
        "roots": {"listChanged": True},
        "sampling": {"tools": {}},
    }
    relay: frozenset[Any] = frozenset({"elicitation", "roots", "sampling"})
    async with running_source(counted, relay=relay) as it:
        ann = RecordingChannel(capabilities={**capabilities, "tasks": {}, "experimental": {"x": {}}})
        seen = await client(it, ann)
        assert seen["client"]["capabilities"] == capabilities
        assert seen["client"]["clientInfo"]["name"] == "toolcrib"
        ben = RecordingChannel("ben", {"sampling": {}})
        assert (await client(it, ben))["client"]["capabilities"] == {"sampling": {}}
        # What the server asked right after the greeting was put to the one it greeted.
        assert ann.questions == [("roots/list", {})]
        assert (await client(it, ann))["roots"] == [{"action": "accept", "content": {"name": "ann"}}]
        assert not ben.questions


async def test_roots_are_kept_from_programs(counted: Census) -> None:
    async with running_source(counted) as it:
        assert "roots" not in (await client(it, RecordingChannel()))["client"]["capabilities"]


@pytest.mark.requirement("D14")
async def test_caller_without_capabilities_gets_no_own_connection(counted: Census) -> None:
    async with running_source(counted) as it:
        main = (await client(it))["pid"]
        for channel in (
            RecordingChannel(capabilities={}),
            RecordingChannel(capabilities={"roots": {}}),
            RecordingChannel(""),
        ):
            assert (await client(it, channel))["pid"] == main
        assert it.lanes == 0
        declined = said(await it.call("ask", RecordingChannel(capabilities={}), **ELICIT))
        assert declined == {"action": "decline"}
    async with running_source(counted, relay=frozenset[Any]()) as it:
        assert said(await it.call("ask", RecordingChannel(), **ELICIT)) == {"action": "decline"}
        assert it.lanes == 0


@pytest.mark.requirement("D14")
async def test_a_lane_is_kept_for_its_owner(counted: Census) -> None:
    async with running_source(counted) as it:
        ann = [(await client(it, RecordingChannel("ann")))["pid"] for _ in range(2)]
        ben = (await client(it, RecordingChannel("ben")))["pid"]
        other = (await client(it, RecordingChannel("ann", FORMS)))["pid"]
        assert ann[0] == ann[1]
        assert len({ann[0], ben, other}) == it.lanes == 3


@pytest.mark.parametrize("alone", [False, True])
async def test_only_exclusive_callers_get_a_second_connection(counted: Census, alone: bool) -> None:
    waiting, quick = RecordingChannel(answer=never, alone=alone), RecordingChannel(alone=alone)
    async with running_source(counted) as it, anyio.create_task_group() as tasks:
        tasks.start_soon(it.source.call, it.a_call("ask", waiting, **ELICIT))
        await until(lambda: bool(waiting.questions))
        assert said(await it.call("ask", quick, **ELICIT))["content"] == {"name": "ann"}
        assert it.lanes == 1 + alone
        await client(it, quick)
        assert it.lanes == 1 + alone
        tasks.cancel_scope.cancel()


async def test_connection_of_abandoned_call_is_not_given_to_exclusive(counted: Census) -> None:
    async with running_source(counted) as it:
        first = (await client(it, RecordingChannel(alone=True)))["pid"]
        with anyio.move_on_after(0.05):
            await it.call("linger", RecordingChannel(alone=True))
        assert (await client(it, RecordingChannel(alone=True)))["pid"] != first
        shared = (await client(it, RecordingChannel()))["pid"]
        with anyio.move_on_after(0.05):
            await it.call("linger", RecordingChannel())
        assert (await client(it, RecordingChannel()))["pid"] == shared


@pytest.mark.requirement("D14")
@pytest.mark.slow
async def test_twenty_concurrent_callers_get_their_own_questions(counted: Census) -> None:
    owners = [f"owner-{number}" for number in range(20)]
    answers: dict[str, list[Any]] = {owner: [] for owner in owners}

    async def work(it: RunningSource, owner: str) -> None:
        channel = RecordingChannel(owner, {"elicitation": {}, "sampling": {}})
        for turn in range(5):
            form = {"message": f"{owner} {turn}", "requestedSchema": {"type": "object"}}
            result = await it.call("ask", channel, method="elicitation/create", params=form)
            answers[owner].append(said(result)["content"]["name"])
        assert [params["message"] for _, params in channel.questions] == [f"{owner} {n}" for n in range(5)]

    async with running_source(counted, max_owner_connections=20) as it:
        async with anyio.create_task_group() as tasks:
            for owner in owners:
                tasks.start_soon(work, it, owner)
        assert it.lanes == 20
    assert answers == {owner: [owner] * 5 for owner in owners}


@pytest.mark.requirement("D14")
async def test_an_idle_lane_ends_and_its_process_with_it(counted: Census) -> None:
    async with running_source(counted, owner_idle_timeout=0.05) as it:
        alone = it.servers()
        await client(it, RecordingChannel())
        await until(lambda: it.lanes == 0 and it.servers() == alone)
        assert (await client(it, RecordingChannel()))["client"]
    assert counted.alive() == []


def test_idle_connection_closes_within_30_s_by_default() -> None:
    settings = settings_of("curious", McpServer(transport="stdio"), str)
    longest_stop = len(STOP_STEPS) * StdioTransport(command=CURIOUS).patience
    assert settings.owner_idle_timeout + longest_stop <= 30


@pytest.mark.requirement("D14")
async def test_an_idle_copy_that_ignores_sigterm_is_killed(counted: Census) -> None:
    async with running_source(counted, command=STUBBORN, patience=0.05, owner_idle_timeout=0.05) as it:
        alone = it.servers()
        await client(it, RecordingChannel())
        await until(lambda: it.lanes == 0 and it.servers() == alone)


async def test_longest_idle_connection_is_closed_at_the_limit(counted: Census) -> None:
    async with running_source(counted, max_owner_connections=2) as it:
        ann, ben = [(await client(it, RecordingChannel(owner)))["pid"] for owner in ("ann", "ben")]
        carl = (await client(it, RecordingChannel("carl")))["pid"]
        assert it.lanes == 2
        assert (await client(it, RecordingChannel("ben")))["pid"] == ben
        assert (await client(it, RecordingChannel("carl")))["pid"] == carl
        assert (await client(it, RecordingChannel("ann")))["pid"] != ann


async def test_while_all_lanes_are_busy_a_call_waits_only_so_long(counted: Census) -> None:
    waiting = RecordingChannel(answer=never)
    async with running_source(counted, max_owner_connections=1) as it, anyio.create_task_group() as tasks:
        tasks.start_soon(it.source.call, it.a_call("ask", waiting, **ELICIT))
        await until(lambda: bool(waiting.questions))
        hurried = a_call(a_tool("curious:about", family="mcp", timeout=0.1), channel=RecordingChannel("ben"))
        with pytest.raises(Refused) as caught:
            await it.source.call(hurried)
        assert (caught.value.problem.code, caught.value.problem.retry_after) == ("OVERLOADED", 1)
        tasks.cancel_scope.cancel()


async def test_one_caller_takes_at_most_half_the_connections(counted: Census) -> None:
    waiting = [RecordingChannel(f"session {number}", answer=never, alone=bool(number)) for number in range(2)]
    async with running_source(counted, max_owner_connections=4) as it, anyio.create_task_group() as tasks:
        for each in waiting:
            tasks.start_soon(it.source.call, it.a_call("ask", each, **ELICIT))
        await until(lambda: all(each.questions for each in waiting))
        about = a_tool("curious:about", family="mcp", timeout=0.1)
        with pytest.raises(Refused) as raised:
            await it.source.call(a_call(about, channel=RecordingChannel("session 2")))
        assert matches("sources", "one caller takes at most half the connections", str(raised.value))
        about = a_tool("curious:about", family="mcp", timeout=20.0)
        assert await it.source.call(
            a_call(about, channel=RecordingChannel("ben"), caller=a_caller(id="key:ben"))
        )
        assert it.lanes == 3
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("I10")
async def test_users_of_one_key_leave_lanes_to_other_keys(counted: Census) -> None:
    users = [RecordingChannel(f"user {number}", answer=never, alone=True) for number in range(3)]
    async with running_source(counted, max_owner_connections=4) as it, anyio.create_task_group() as tasks:
        for number, each in enumerate(users):
            call = it.a_call("ask", each, **ELICIT)
            tasks.start_soon(it.source.call, call.replace(caller=a_caller(id=f"user:{number}", key="one")))
        await until(lambda: all(each.questions for each in users))
        about = a_tool("curious:about", family="mcp", timeout=0.1)
        with pytest.raises(Refused):
            await it.source.call(
                a_call(about, channel=RecordingChannel("user 3"), caller=a_caller(id="user:3", key="one"))
            )
        about = a_tool("curious:about", family="mcp", timeout=20.0)
        assert await it.source.call(
            a_call(about, channel=RecordingChannel("ben"), caller=a_caller(id="key:ben", key="ben"))
        )
        tasks.cancel_scope.cancel()


async def test_a_call_that_waited_gets_the_lane_that_comes_free(counted: Census) -> None:
    gate = anyio.Event()

    async def later(_method: str, _params: JsonObject) -> JsonObject:
        await gate.wait()
        return {"action": "cancel"}

    first = RecordingChannel(answer=later)
    async with running_source(counted, max_owner_connections=1) as it, anyio.create_task_group() as tasks:
        tasks.start_soon(it.source.call, it.a_call("ask", first, **ELICIT))
        await until(lambda: bool(first.questions))
        tasks.start_soon(client, it, RecordingChannel("ben"))
        await anyio.wait_all_tasks_blocked()
        gate.set()
    assert len(first.questions) == 1


@pytest.mark.requirement("D14")
async def test_a_lane_that_dies_fails_its_calls_and_nothing_else(counted: Census) -> None:
    async with running_source(counted) as it:
        with pytest.raises(Lost):
            await it.call("die", RecordingChannel())
        await until(lambda: it.lanes == 0)
        assert (await client(it, RecordingChannel()))["client"]
        assert (await client(it))["client"]
        assert not it.link.downs


async def test_single_instance_server_is_reported(counted: Census, caplog: pytest.LogCaptureFixture) -> None:
    async with running_source(counted, env={"CURIOUS_ONCE": "1"}) as it:
        with pytest.raises(Unavailable) as caught:
            await it.call("about", RecordingChannel())
        assert matches("sources", "single instance server is reported", str(caught.value))
        assert caught.value.problem.code == "SOURCE_DOWN"
        assert (await client(it))["client"]
        assert it.lanes == 0
    assert "a connection for a caller that can be asked failed: it exited with status 4" in caplog.text


# On a simulated clock: the first connection must come up within the time that the second one exhausts.
@simulated_clock
async def test_a_connection_that_is_not_answered_is_given_up() -> None:
    server = ScriptedConnection(initialize=[legacy(), None], tools__list=listed("about"))
    source = McpSource(McpSettings(id="curious", start_timeout=0.05), server.dial)
    link = RecordingLink()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.run, link)
        await until(lambda: bool(link.offers))
        call = a_call(a_tool("curious:about", family="mcp"), channel=RecordingChannel())
        with pytest.raises(Unavailable) as raised:
            await source.call(call)
        assert matches("sources", "a connection that is not answered is given up", str(raised.value))
        assert server.relayed == [{"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}]
        tasks.cancel_scope.cancel()
    assert server.dials == server.closed == 2


async def test_calls_in_lanes_end_with_the_run(counted: Census) -> None:
    waiting = RecordingChannel(answer=never)
    ended: list[Exception] = []

    async def call(it: RunningSource) -> None:
        try:
            await it.call("ask", waiting, **ELICIT)
        except (Lost, Unavailable) as error:
            ended.append(error)

    async with anyio.create_task_group() as tasks:
        async with running_source(counted) as it:
            tasks.start_soon(call, it)
            await until(lambda: bool(waiting.questions))
        await until(lambda: bool(ended))
    assert waiting.given_up == 1


# What is relayed besides questions


async def test_the_level_is_set_once_and_messages_come_through(counted: Census) -> None:
    async with running_source(counted) as it:
        ann = RecordingChannel(level="warning")
        await it.call("log", ann, count=3)
        assert [each["data"] for each in ann.told] == [0, 1, 2]
        assert (await client(it, ann))["levels"] == ["warning"]
        ann.level = "debug"
        assert (await client(it, ann))["levels"] == ["warning", "debug"]
        ann.level = "shouting"
        assert (await client(it, ann))["levels"] == ["warning", "debug"]


async def test_open_and_withdrawn_questions_are_harmless(counted: Census) -> None:
    async with running_source(counted) as it:
        ann = RecordingChannel(answer=never)
        assert said(await it.call("withdraw", ann, **ELICIT)) == "never mind"
        assert said(await it.call("leave_open", ann, **ELICIT)) == "done"
        seen = await client(it, ann)
        assert [each["error"]["code"] for each in seen["roots"]] == [-32000]
        assert ann.given_up == len(ann.questions)
        many = RecordingChannel()
        refused = said(await it.call("flood", many, method="elicitation/create", count=100))
        assert len(many.questions) == 100 - refused


async def test_vendor_meta_is_relayed_connection_meta_is_not(counted: Census) -> None:
    async with running_source(counted) as it:
        meta = {"vendor/x": [1], "progressToken": 7, "io.modelcontextprotocol/logLevel": "debug"}
        for channel in (None, RecordingChannel()):
            call = it.a_call("about", channel)
            result = await it.source.call(call.replace(meta=meta))
            assert said(result)["meta"] == {"vendor/x": [1]}
