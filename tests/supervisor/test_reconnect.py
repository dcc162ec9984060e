"""Servers on the web: an outage is no crash, so they are probed and reconnected to."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.supervisor.running import TOOL, RecordingSink, reaches, running, state_of, until
from toolcrib.errors import Unavailable
from toolcrib.interfaces import Offer, ServerUnreachable, SourceLink, Upkeep
from toolcrib.supervisor import Supervisor
from toolcrib.supervisor.backoff import MAX_PROBES_PER_SECOND, Reconnect
from toolcrib.testing import FakeSource, a_call, a_tool

pytestmark = pytest.mark.anyio

HOUR = 3600.0
SLACK = 0.01
"""Seconds between two looks at a state."""


class Remote(FakeSource):
    """A source whose server the test can take offline."""

    def __init__(self, name: str = "f:a") -> None:
        super().__init__([a_tool(name, family="mcp")])
        self.away: str | None = None
        self.probes: list[float] = []
        self.timeouts: list[float] = []
        self.proxied: str | None = None
        """The error a proxy returns for its server."""
        self.connecting: Callable[[], Awaitable[None]] | None = None

    async def reach(self, within: float) -> None:
        self.probes.append(anyio.current_time())
        self.timeouts.append(within)
        if self.connecting is not None:
            await self.connecting()
        if self.away is not None:
            raise ServerUnreachable(self.away)

    async def run(self, link: SourceLink) -> None:
        if self.proxied is not None:
            raise ServerUnreachable(self.proxied)
        await super().run(link)

    def fail(self, reason: str = "connection refused") -> None:
        """Be away from now on."""
        self.away = reason
        self.die()


async def _restarts(supervisor: Supervisor, remote: Remote, outage: float) -> float:
    """Be away for some seconds; return the seconds from being there again to being up."""
    remote.fail()
    await anyio.sleep(outage)
    remote.away, back = None, anyio.current_time()
    await reaches(supervisor, "up")
    return anyio.current_time() - back


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("calls", [True, False])
async def test_every_short_outage_ends_within_a_second(calls: bool) -> None:
    remote = Remote()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(remote, Upkeep(most_restarts=0))
    async with running(supervisor):
        await reaches(supervisor, "up")
        took: list[float] = []
        for _ in range(30):
            if calls:
                await supervisor.handler(TOOL)(a_call())
            else:
                await anyio.sleep(1.5)
            took.append(await _restarts(supervisor, remote, 0.5))
        assert max(took) < 1.0
        assert state_of(supervisor).restarts == 30


@pytest.mark.requirement("C2")
async def test_an_outage_is_a_state_with_its_reason_and_the_next_try() -> None:
    remote = Remote()
    sink = RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(remote, Upkeep(most_restarts=0))
    async with running(supervisor):
        await reaches(supervisor, "up")
        remote.fail()
        await anyio.sleep(60)
        state = state_of(supervisor)
        assert (state.state, state.last_error) == ("down", "killed by the test")
        assert sink.degraded == {"f"}
        with pytest.raises(Unavailable) as refused:
            await supervisor.handler(TOOL)(a_call())
        assert refused.value.problem.code == "SOURCE_DOWN"
        assert 0 < (refused.value.problem.retry_after or 0) < 1.0


async def test_pauses_grow_with_the_outage_and_stay_bounded() -> None:
    remote = Remote()
    remote.away = "connection refused"
    supervisor = Supervisor(RecordingSink())
    supervisor.add(remote)
    async with running(supervisor):
        await anyio.sleep(2 * HOUR)
        pauses = [later - before for before, later in zip(remote.probes, remote.probes[1:], strict=False)]
        outage = [at - remote.probes[0] for at in remote.probes[1:]]
        assert max(pauses[:3]) < 0.2
        assert max(p for p, at in zip(pauses, outage, strict=True) if at < 120) < 0.7
        late = [pause for pause, at in zip(pauses, outage, strict=True) if at > HOUR]
        assert 7 < min(late) < max(late) < 13
        assert set(remote.timeouts[1:10]) == {1.0}
        assert (remote.timeouts[0], remote.timeouts[-1]) == (3.0, 3.0)
        assert remote.runs == 0


@pytest.mark.requirement("C2")
async def test_probes_are_shared_between_servers() -> None:
    remotes = [Remote(f"s{number}:a") for number in range(100)]
    supervisor = Supervisor(RecordingSink())
    for remote in remotes:
        remote.away = "connection refused"
        supervisor.add(remote)
    async with running(supervisor):
        await anyio.sleep(10)
        before = sum(len(remote.probes) for remote in remotes)
        await anyio.sleep(100)
        probes = sum(len(remote.probes) for remote in remotes) - before
        assert probes <= 100 * MAX_PROBES_PER_SECOND * 1.1


async def test_an_outage_is_logged_once_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    remote = Remote()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(remote)
    async with running(supervisor):
        await reaches(supervisor, "up")
        caplog.clear()
        remote.fail()
        await anyio.sleep(30)
        remote.away, remote.proxied = None, "the server did not answer properly (HTTP 502)"
        await anyio.sleep(30)
        assert state_of(supervisor).last_error == remote.proxied
        remote.proxied = None
        await reaches(supervisor, "up")
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@pytest.mark.requirement("C4")
async def test_a_call_reconnects_to_a_server_that_is_back() -> None:
    remote = Remote()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(remote)
    async with running(supervisor):
        await reaches(supervisor, "up")
        remote.fail()
        await anyio.sleep(HOUR)
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
        probes = len(remote.probes)
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
        assert len(remote.probes) == probes, "calls do not probe without end"
        remote.away = None
        await anyio.sleep(0.3)
        now = anyio.current_time()
        await supervisor.wake("f")
        assert (supervisor.is_up("f"), anyio.current_time() - now < 0.01) == (True, True)


async def test_a_call_waits_a_second_for_a_probe_at_most() -> None:
    remote = Remote()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(remote)
    async with running(supervisor):
        await reaches(supervisor, "up")
        remote.fail()
        await anyio.sleep(HOUR)
        remote.connecting = anyio.sleep_forever
        now = anyio.current_time()
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
        assert anyio.current_time() - now == pytest.approx(1.0, abs=0.01)
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
        assert anyio.current_time() - now == pytest.approx(1.0, abs=0.01), "others do not wait for it"


@pytest.mark.requirement("C2")
async def test_failed_handshakes_back_off_into_a_crash_loop() -> None:
    remote = Remote()
    supervisor = Supervisor(RecordingSink(), crash_loop_delay=60.0)
    supervisor.add(remote, Upkeep(most_restarts=3, backoff=1.0))
    async with running(supervisor):
        await reaches(supervisor, "up")
        remote.failing = "HTTP 500"
        remote.die()
        await reaches(supervisor, "crash_loop")
        assert remote.runs == 5, "the lost one, one right after it, three restarts"
        pauses = [later - before for before, later in zip(remote.probes, remote.probes[1:], strict=False)]
        assert all(0.5 <= pause / 2**number <= 1.01 for number, pause in enumerate(pauses[1:])), pauses
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
        assert remote.runs == 5, "calls do not hurry what answers and fails"
        remote.failing = None
        await reaches(supervisor, "up")


async def test_proxy_error_is_no_crash() -> None:
    remote = Remote()
    remote.proxied = "HTTP 502"
    supervisor = Supervisor(RecordingSink())
    supervisor.add(remote, Upkeep(most_restarts=0))
    async with running(supervisor):
        await anyio.sleep(30)
        assert state_of(supervisor).state in ("down", "starting")
        remote.proxied = None
        now = anyio.current_time()
        await reaches(supervisor, "up")
        assert anyio.current_time() - now < 1.0


async def test_connections_that_break_at_once_back_off() -> None:
    remote = Remote()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(remote, Upkeep(most_restarts=5, backoff=1.0))
    async with running(supervisor):
        for _ in range(4):
            await reaches(supervisor, "up")
            remote.die()
            await reaches(supervisor, "down")
        now = anyio.current_time()
        await reaches(supervisor, "up")
        assert anyio.current_time() - now > 1.0
        await supervisor.handler(TOOL)(a_call())
        remote.die()
        await reaches(supervisor, "down")
        now = anyio.current_time()
        await reaches(supervisor, "up")
        assert anyio.current_time() - now < 0.2, "a good call resets the count"


@pytest.mark.requirement("C2")
async def test_without_restarts_an_outage_lasts_until_a_test() -> None:
    remote = Remote()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(remote, Upkeep(restart=False))
    async with running(supervisor):
        await reaches(supervisor, "up")
        remote.fail()
        await reaches(supervisor, "stopped")
        probes = len(remote.probes)
        await anyio.sleep(HOUR)
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
        assert len(remote.probes) == probes
        assert (await supervisor.test("f", 1.0)).state == "stopped"
        remote.away = None
        assert (await supervisor.test("f", 1.0)).state == "up"


async def test_lazy_server_is_reconnected_by_calls() -> None:
    remote = Remote()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(remote, Upkeep(lazy=True), remembered=Offer(tools=[TOOL]))
    remote.away = "connection refused"
    async with running(supervisor):
        assert (state_of(supervisor).state, remote.probes) == ("asleep", [])
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
        remote.away = None
        await anyio.sleep(0.3)
        await supervisor.wake("f")
        assert supervisor.is_up("f")


async def test_tools_are_removed_after_the_grace_period() -> None:
    remote, sink = Remote(), RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(remote, Upkeep(grace=60.0))
    async with running(supervisor):
        await reaches(supervisor, "up")
        remote.fail()
        await anyio.sleep(50)
        assert sink.degraded == {"f"}
        await anyio.sleep(20)
        assert sink.shown == {}
        remote.away = None
        await reaches(supervisor, "up")
        assert (sink.shown, sink.degraded) == ({"f": ("f:a",)}, set())


async def test_reload_replaces_a_disconnected_server() -> None:
    old, new = Remote(), Remote()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(old)
    async with running(supervisor):
        await reaches(supervisor, "up")
        old.fail()
        await anyio.sleep(10)
        supervisor.replace(new)
        await reaches(supervisor, "up")
        probes = len(old.probes)
        await anyio.sleep(60)
        assert (len(old.probes), new.running) == (probes, 1)


async def test_reconnect_notifies_listeners() -> None:
    heard: list[str] = []
    remote = Remote()
    supervisor = Supervisor(RecordingSink(), reconnected=heard.append)
    supervisor.add(remote)
    async with running(supervisor):
        await reaches(supervisor, "up")
        assert heard == []
        await _restarts(supervisor, remote, 5.0)
        assert heard == ["f"]


async def test_connected_servers_take_no_probes() -> None:
    away: set[Reconnect] = set()
    one, other = Reconnect(Remote(), away), Reconnect(Remote(), away)
    one.begin(1.0)
    one.begin(5.0)
    other.begin(1.0)
    assert (len(away), one.in_progress) == (2, True)
    one.end()
    assert (len(away), one.in_progress) == (1, False)
    await until(lambda: 0.07 < one.delay(100.0) < 0.13)
