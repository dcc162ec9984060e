"""Circuit breakers: consecutive failures open them; after a pause, one probe call decides."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.texts import matches
from toolcrib.errors import BusinessRuleError, Failed, Lost, Refused, ToolcribError, Unavailable
from toolcrib.interfaces import Stage
from toolcrib.model import Call, Result
from toolcrib.steps.breaker import Breaker
from toolcrib.testing import a_call, a_caller, a_tool, echo

pytestmark = pytest.mark.anyio
TOOL = a_tool("far:echo", family="mcp")
DOWN = Unavailable("NETWORK_ERROR", "nobody answers")


class BreakerClient:
    """Calls a scripted source through a breaker with a manual clock."""

    def __init__(self, failures: int = 3) -> None:
        self.now, self.reached = 0.0, 0
        self.error: ToolcribError | None = DOWN
        self.breaker = Breaker(failures, clock=lambda: self.now)
        self.stage = self.fit()

    def fit(self) -> Stage:
        stage = self.breaker.fit(TOOL)
        assert stage is not None
        return stage

    async def source(self, call: Call) -> Result:
        self.reached += 1
        await checkpoint()
        if self.error is not None:
            raise self.error
        return await echo(call)

    async def call(self, deadline: float | None = None, *, key: str = "") -> str:
        """Make a call one second after the previous one; return its outcome."""
        self.now += 1.0
        try:
            await self.stage(a_call(TOOL, deadline=deadline, caller=a_caller(key=key)), self.source)
        except ToolcribError as error:
            return error.problem.code
        return "good"

    @property
    def state(self) -> str:
        return self.breaker.states()["far"]

    async def opened(self) -> "BreakerClient":
        while self.state == "closed":
            await self.call()
        return self


async def test_app_start_failures_do_not_open_the_breaker() -> None:
    client = BreakerClient()
    client.error = Unavailable("TIMEOUT", "it did not connect", stage="timeout")
    for _ in range(10):
        assert await client.call() == "TIMEOUT"
    client.error = None
    assert await client.call() == "good"


@pytest.mark.parametrize("family", ["function", "core"])
async def test_in_process_tools_have_no_breaker(family: str) -> None:
    assert Breaker().fit(a_tool(family=family)) is None


@pytest.mark.requirement("I5")
@pytest.mark.check(35)
async def test_consecutive_failures_open_the_breaker() -> None:
    client = BreakerClient(failures=10)
    assert [await client.call() for _ in range(10)] == ["NETWORK_ERROR"] * 10
    assert (client.state, client.reached) == ("open", 10)
    with pytest.raises(Unavailable, match="nothing was done") as rest:
        await client.stage(a_call(TOOL), client.source)
    assert (rest.value.problem.code, rest.value.problem.retry_after) == ("SOURCE_DOWN", 5.0)
    assert client.reached == 10


@pytest.mark.parametrize(
    "error",
    [
        DOWN,
        Lost("SOURCE_DOWN", "it died"),
        Lost("OUTCOME_UNKNOWN", "it died"),
        Lost("TIMEOUT", "too late"),
        Failed("HTTP_ERROR", "502"),
    ],
    ids=lambda error: f"{type(error).__name__} {error.problem.code}",
)
async def test_source_failures_are_counted(error: ToolcribError) -> None:
    client = BreakerClient()
    client.error = error
    for _ in range(3):
        await client.call()
    assert client.state == "open"


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("SOURCE_DOWN", "starting"),
        Refused("OVERLOADED", "busy"),
        Failed("TOOL_FAILED", "no"),
        BusinessRuleError("CLOSED", "the shop is closed"),
    ],
    ids=lambda error: f"{type(error).__name__} {error.problem.code}",
)
async def test_other_failures_are_not_counted(error: ToolcribError) -> None:
    client = BreakerClient()
    client.error = error
    for _ in range(20):
        await client.call()
    assert (client.state, client.reached) == ("closed", 20)


@pytest.mark.parametrize("answer", [None, Failed("TOOL_FAILED", "no")])
async def test_answer_resets_the_failure_count(answer: ToolcribError | None) -> None:
    client = BreakerClient()
    for _ in range(5):
        client.error = DOWN
        await client.call()
        await client.call()
        client.error = answer
        await client.call()
    assert client.state == "closed"


async def test_neutral_errors_do_not_reset_the_failure_count() -> None:
    client = BreakerClient()
    for error in (DOWN, Refused("OVERLOADED", "busy"), DOWN, Unavailable("SOURCE_DOWN", "no"), DOWN):
        client.error = error
        await client.call()
    assert client.state == "open"


async def test_timeouts_of_short_deadlines_are_not_counted() -> None:
    client = BreakerClient()
    client.error = Lost("TIMEOUT", "too late")
    for _ in range(5):
        await client.call(deadline=client.now + 0.5)
    assert client.state == "closed"
    for _ in range(3):
        await client.call(deadline=client.now + 500)
    assert client.state == "open"


async def test_simultaneous_failures_count_once() -> None:
    client = BreakerClient()
    client.error = Lost("SOURCE_DOWN", "it died")

    async def lost() -> None:
        with pytest.raises(Lost):
            await client.stage(a_call(TOOL), client.source)

    for _ in range(2):
        client.now += 1
        async with anyio.create_task_group() as tasks:
            for _ in range(32):
                tasks.start_soon(lost)
    assert client.state == "closed"
    await client.call()
    assert client.state == "open"


@pytest.mark.check(35)
async def test_successful_probe_closes_the_breaker() -> None:
    client = await BreakerClient().opened()
    reached = client.reached
    client.now += 5
    client.error = None
    ended: list[str] = []

    async def call() -> None:
        ended.append(await client.call())

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(call)
    assert sorted(ended) == ["SOURCE_DOWN"] * 9 + ["good"]
    assert (client.reached, client.state) == (reached + 1, "closed")
    assert await client.call() == "good"


async def test_failed_probes_double_the_open_time() -> None:
    client = await BreakerClient().opened()
    rests: list[float] = []
    for _ in range(6):
        with pytest.raises(Unavailable) as rest:
            await client.stage(a_call(TOOL), client.source)
        rests.append(rest.value.problem.retry_after or 0)
        client.now += rests[-1]
        assert await client.call() == "NETWORK_ERROR"
    assert rests == [5, 10, 20, 40, 60, 60]
    client.now += 60
    client.error = None
    assert await client.call() == "good"
    client.error = DOWN
    await client.opened()
    with pytest.raises(Unavailable) as rest:
        await client.stage(a_call(TOOL), client.source)
    assert rest.value.problem.retry_after == 5


async def test_inconclusive_probe_allows_another() -> None:
    client = await BreakerClient().opened()
    client.now += 5
    with anyio.move_on_after(0) as gone:
        await client.call()
    assert gone.cancelled_caught
    assert client.state == "half_open"
    client.error = Refused("OVERLOADED", "busy")
    assert await client.call() == "OVERLOADED"
    assert client.state == "half_open"
    client.error = None
    assert await client.call() == "good"
    assert client.state == "closed"


async def test_calls_started_before_opening_are_not_counted() -> None:
    client, gate = BreakerClient(), anyio.Event()

    async def late(call: Call) -> Result:
        await gate.wait()
        return await echo(call)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.stage, a_call(TOOL), late)
        await anyio.wait_all_tasks_blocked()
        await client.opened()
        gate.set()
    assert client.state == "open"
    assert await client.call() == "SOURCE_DOWN"


async def test_breakers_are_per_source() -> None:
    client = await BreakerClient().opened()
    client.stage = client.fit()
    assert await client.call() == "SOURCE_DOWN"
    other = client.breaker.fit(a_tool("near:echo", family="mcp"))
    assert other is not None
    assert (await other(a_call(), echo)).data == {}
    assert client.breaker.states() == {"far": "open", "near": "closed"}


async def test_forgotten_source_starts_closed() -> None:
    client = await BreakerClient().opened()
    client.error = None
    client.breaker.forget("far")
    client.breaker.forget("unknown")
    assert (await client.call(), client.state) == ("good", "closed")


@pytest.mark.requirement("I10")
async def test_failures_of_one_key_do_not_refuse_another() -> None:
    client = await BreakerClient().opened()
    assert await client.call() == "SOURCE_DOWN"
    client.error = None
    assert [await client.call(key="b"), client.state] == ["good", "closed"]
    assert await client.call() == "good"


@pytest.mark.requirement("I10")
async def test_answer_with_an_error_closes_what_another_key_opened() -> None:
    client = await BreakerClient().opened()
    client.error = Failed("HANDLER_ERROR", "no such card")
    assert [await client.call(key="b"), client.state] == ["HANDLER_ERROR", "closed"]


@pytest.mark.requirement("I10")
async def test_failures_of_two_keys_refuse_everyone() -> None:
    client = await BreakerClient().opened()
    assert [await client.call(key=key) for key in "bbca"] == ["NETWORK_ERROR"] + ["SOURCE_DOWN"] * 3
    assert client.state == "open"


# --- details of rests and probes ---


class Source:
    """A scripted source behind a breaker with a manual clock."""

    def __init__(self, failures: int) -> None:
        self.now, self.up = 0.0, False
        self.error: ToolcribError = DOWN
        self.breaker = Breaker(failures, clock=lambda: self.now)
        stage = self.breaker.fit(TOOL)
        assert stage is not None
        self.stage: Stage = stage

    async def answer(self, call: Call) -> Result:
        if not self.up:
            raise self.error
        return await echo(call)

    async def call(self, at: float, deadline: float | None = None) -> ToolcribError | None:
        self.now = at
        try:
            await self.stage(a_call(TOOL, deadline=deadline), self.answer)
        except ToolcribError as error:
            return error
        return None

    @property
    def state(self) -> str:
        return self.breaker.states()["far"]


async def test_open_breaker_names_source_and_exact_retry_after() -> None:
    source = Source(failures=1)
    await source.call(at=0.0)
    rest = await source.call(at=2 / 3)
    assert rest is not None
    assert rest.problem.code == "SOURCE_DOWN"
    assert matches("errors", "breaker is open", rest.problem.message)
    assert rest.problem.retry_after == 4.333


async def test_open_time_ends_at_retry_after() -> None:
    source = Source(failures=1)
    await source.call(at=1.0)
    source.up = True
    assert await source.call(at=5.999) is not None
    assert await source.call(at=6.0) is None


async def test_call_during_a_probe_gets_short_retry_after() -> None:
    source, gate = Source(failures=1), anyio.Event()
    await source.call(at=0.0)
    source.now = 100.0

    async def probed(call: Call) -> Result:
        await gate.wait()
        return await echo(call)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.stage, a_call(TOOL), probed)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Unavailable) as rest:
            await source.stage(a_call(TOOL), echo)
        assert rest.value.problem.retry_after == 0.1
        gate.set()


async def test_closed_breaker_counts_from_zero() -> None:
    source = Source(failures=3)
    for at in (1.0, 2.0, 3.0):
        await source.call(at)
    source.up = True
    assert await source.call(at=20.0) is None
    source.up = False
    for at in (21.0, 22.0):
        await source.call(at)
        assert source.state == "closed"
    await source.call(at=23.0)
    assert source.state == "open"


async def test_timeout_at_the_deadline_is_not_counted() -> None:
    source = Source(failures=1)
    source.error = Lost("TIMEOUT", "too late")
    await source.call(at=5.0, deadline=5.0)
    assert source.state == "closed"
    await source.call(at=6.0, deadline=6.1)
    assert source.state == "open"


@pytest.mark.parametrize("apart, state", [(0.04, "closed"), (0.05, "open")])
async def test_minimum_interval_between_counted_failures(apart: float, state: str) -> None:
    source = Source(failures=2)
    await source.call(at=0.0)
    await source.call(at=apart)
    assert source.state == state
