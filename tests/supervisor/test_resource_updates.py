"""Resource updates of sources: subscriptions are sent after every start."""

import anyio
import pytest

from tests.supervisor.running import QUICK, TOOL, RecordingSink, reaches, running, source, state_of, until
from toolcrib.errors import Refused, ToolcribError
from toolcrib.interfaces import Offer, Upkeep
from toolcrib.supervisor import Supervisor
from toolcrib.supervisor.runner_environment import SUBSCRIBE_TIMEOUT_SECONDS
from toolcrib.testing import FakeSource

pytestmark = pytest.mark.anyio


class Teller(FakeSource):
    """A source that records its subscriptions."""

    def __init__(self) -> None:
        super().__init__([TOOL])
        self.followed: list[frozenset[str]] = []
        self.refusing: dict[str, ToolcribError] = {}
        self.raising: Exception | None = None
        self.thinking = 0.0

    async def follow(self, uris: frozenset[str]) -> dict[str, ToolcribError]:
        self.followed.append(uris)
        await anyio.sleep(self.thinking)
        if self.raising is not None:
            raise self.raising
        return self.refusing


class Reader:
    """A subscriber of resources."""

    def __init__(self, *uris: str) -> None:
        self.uris, self.heard = frozenset(uris), list[tuple[str, str]]()

    def wanted(self, source: str) -> frozenset[str]:
        return self.uris if source == "f" else frozenset()

    def updated(self, source: str, uri: str) -> None:
        self.heard.append((source, uri))


def told(reader: Reader, *sources: FakeSource, upkeep: Upkeep = QUICK) -> Supervisor:
    supervisor = Supervisor(RecordingSink())
    supervisor.resource_updates.connect(reader.wanted, reader.updated)
    for each in sources:
        supervisor.add(each, upkeep)
    return supervisor


async def test_subscriptions_are_sent_after_every_start() -> None:
    reader, teller = Reader("x://1"), Teller()
    async with running(told(reader, teller)):
        await until(lambda: len(teller.followed) == 1)
        teller.update("x://1")
        teller.die()
        await until(lambda: len(teller.followed) == 2)
    assert teller.followed == [{"x://1"}, {"x://1"}]
    assert reader.heard == [("f", "x://1")]


async def test_no_subscription_without_subscribers() -> None:
    teller = Teller()
    async with running(told(Reader(), teller)) as tasks:
        await reaches_up(teller)
        await anyio.sleep(1)
        assert teller.followed == []
        tasks.cancel_scope.cancel()


async def reaches_up(teller: FakeSource) -> None:
    await until(lambda: teller.running == 1)


async def test_changed_subscriptions_reach_the_source() -> None:
    reader, teller = Reader(), Teller()
    supervisor = told(reader, teller)
    supervisor.resubscribe("f")
    async with running(supervisor):
        await reaches(supervisor, "up")
        reader.uris = frozenset({"x://2"})
        supervisor.resubscribe("f")
        supervisor.resubscribe("nobody")
        await until(lambda: teller.followed == [{"x://2"}])


async def test_replacement_sends_the_updates() -> None:
    reader, old, new = Reader("x://1"), Teller(), Teller()
    supervisor = told(reader, old)
    async with running(supervisor):
        await until(lambda: len(old.followed) == 1)
        supervisor.replace(new, QUICK)
        await until(lambda: len(new.followed) == 1)
        old.update("x://1")
        new.update("x://1")
    assert reader.heard == [("f", "x://1")]


async def test_subscription_errors_are_logged_only(caplog: pytest.LogCaptureFixture) -> None:
    reader, teller = Reader("x://1"), Teller()
    teller.refusing = {"x://1": Refused("NOT_FOUND", "there is none")}
    supervisor = told(reader, teller)
    async with running(supervisor):
        await until(lambda: "f does not tell of changes to x://1: there is none" in caplog.text)
        teller.raising = ValueError("odd")
        supervisor.resubscribe("f")
        await until(lambda: "f does not tell what has changed: ValueError: odd" in caplog.text)
        teller.thinking = 10 * SUBSCRIBE_TIMEOUT_SECONDS
        supervisor.resubscribe("f")
        await anyio.sleep(2 * SUBSCRIBE_TIMEOUT_SECONDS)
        assert state_of(supervisor).state == "up"


async def test_source_without_updates_gets_no_subscription() -> None:
    fake = source()
    supervisor = told(Reader("x://1"), fake)
    async with running(supervisor):
        await reaches(supervisor, "up")
        supervisor.resubscribe("f")


async def test_subscribed_source_does_not_idle_stop() -> None:
    reader, teller = Reader("x://1"), Teller()
    supervisor = told(reader, teller, upkeep=Upkeep(idle=1.0))
    async with running(supervisor):
        await reaches(supervisor, "up")
        await anyio.sleep(10)
        assert state_of(supervisor).state == "up"
        reader.uris = frozenset()
        await reaches(supervisor, "asleep")


async def test_subscription_does_not_wake_a_source() -> None:
    reader, teller = Reader(), Teller()
    supervisor = Supervisor(RecordingSink())
    supervisor.resource_updates.connect(reader.wanted, reader.updated)
    supervisor.add(teller, Upkeep(lazy=True), remembered=Offer(tools=[TOOL]))
    async with running(supervisor):
        reader.uris = frozenset({"x://1"})
        supervisor.resubscribe("f")
        await anyio.sleep(10)
        assert (state_of(supervisor).state, teller.followed) == ("asleep", [])
        await supervisor.wake("f")
        await until(lambda: teller.followed == [{"x://1"}])
