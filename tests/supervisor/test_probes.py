"""Reconnect probes: a failing probe affects no other source, and none delays another."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.supervisor.running import RecordingSink, reaches, running, state_of
from tests.supervisor.test_reconnect import HOUR, Remote
from toolcrib.interfaces import Upkeep
from toolcrib.supervisor import Supervisor

pytestmark = pytest.mark.anyio


def _raises(error: BaseException) -> Callable[[], Awaitable[None]]:
    async def connecting() -> None:
        raise error

    return connecting


@pytest.mark.requirement("C1")
@pytest.mark.parametrize(
    "error, said",
    [
        (UnicodeError("label empty"), "UnicodeError: label empty"),
        (ExceptionGroup("", [ZeroDivisionError()]), "ZeroDivisionError"),
        (asyncio.CancelledError(), "it broke off from within"),
    ],
)
async def test_failing_probe_affects_one_server(error: BaseException, said: str) -> None:
    odd, sound = Remote("odd:a"), Remote("sound:a")
    odd.connecting, ended = _raises(error), True
    supervisor = Supervisor(RecordingSink())
    supervisor.add(odd, Upkeep(most_restarts=2, backoff=0.1))
    supervisor.add(sound)
    async with running(supervisor):
        await reaches(supervisor, "crash_loop", "odd")
        assert state_of(supervisor, "odd").last_error == said
        assert supervisor.is_up("sound")
        odd.connecting = None
        await reaches(supervisor, "up", "odd")
        ended = False
    assert not ended, "a group whose task broke off ends without an error"


async def _slowest_return(supervisor: Supervisor, fresh: Remote) -> float:
    """Let a server be away for a moment, again and again; return the longest it took to be up again."""
    took: list[float] = []
    for _ in range(10):
        await anyio.sleep(1.5)
        fresh.fail()
        await anyio.sleep(3.0)
        fresh.away, back = None, anyio.current_time()
        await reaches(supervisor, "up", fresh.id)
        took.append(anyio.current_time() - back)
    return max(took)


@pytest.mark.requirement("C2")
async def test_long_outages_do_not_delay_a_fresh_one() -> None:
    fresh, others = Remote(), [Remote(f"s{number}:a") for number in range(40)]
    supervisor = Supervisor(RecordingSink())
    for other in others:
        other.away = "connection refused"
        supervisor.add(other)
    supervisor.add(fresh)
    async with running(supervisor):
        await anyio.sleep(HOUR)
        assert await _slowest_return(supervisor, fresh) < 1.0


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("state", ["stopped", "crash_loop"])
async def test_unprobed_servers_take_no_share(state: str) -> None:
    fresh, others = Remote(), [Remote(f"s{number}:a") for number in range(40)]
    supervisor = Supervisor(RecordingSink())
    for other in others:
        other.failing = "HTTP 500"
        supervisor.add(other, Upkeep(restart=state != "stopped", most_restarts=0, backoff=0.1))
    supervisor.add(fresh)
    async with running(supervisor):
        for other in others:
            await reaches(supervisor, state, other.id)
        assert await _slowest_return(supervisor, fresh) < 1.0
