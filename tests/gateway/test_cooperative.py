"""Work on thousands of tools yields to the event loop and gives consistent results."""

from itertools import count

import anyio
import pytest
from anyio.lowlevel import checkpoint

from toolcrib import cooperative
from toolcrib.catalog import Catalog
from toolcrib.gateway import Completion, Gateway, catalog_state, map_cooperatively
from toolcrib.interfaces import Offer, Reason
from toolcrib.model import Caller, Tool
from toolcrib.pipeline import compose
from toolcrib.policy import Context, Policy
from toolcrib.testing import Recordings, a_caller, a_tool, echo

pytestmark = pytest.mark.anyio

TOOLS = tuple(a_tool(f"x:tool-{n}") for n in range(20))


class Moody:
    """A policy rule with changing answers that counts its calls."""

    name = "moody"

    def __init__(self) -> None:
        self.strict, self.asked = False, 0

    def concerns(self, tool: Tool) -> bool:
        return bool(tool)

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        self.asked += 1
        return Reason(self.name, "is too much now") if self.strict else None

    def audience(self, caller: Caller) -> bool:
        return self.strict


def new_gateway(rule: Moody) -> Gateway:
    made = Gateway(
        Policy([rule]),
        lambda tool: compose((), tool, echo),
        Completion(lambda _tool: (1.0, 0.0, 0)),
        Recordings(),
        new_id=lambda: "id",
        contexts=lambda: {"default": Context()},
    )
    catalog = Catalog(["x"])
    catalog.listen(made.adopt)
    catalog.replace("x", Offer(tools=TOOLS))
    return made


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read of the clock advances it by a second."""
    monkeypatch.setattr(cooperative, "perf_counter", count().__next__)


async def turns_beside(stop: anyio.Event) -> int:
    turns = 0
    while not stop.is_set():
        turns += 1
        await checkpoint()
    return turns


async def test_long_work_yields_to_the_event_loop() -> None:
    for turn, least, most in ((-1.0, 100 // cooperative.ITEMS_PER_CLOCK_CHECK, 100), (1e9, 0, 2)):
        turns, done = list[int](), anyio.Event()

        async def beside(turns: list[int] = turns, done: anyio.Event = done) -> None:
            turns.append(await turns_beside(done))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beside)
            assert await map_cooperatively(range(100), str, slice_seconds=turn) == [
                str(n) for n in range(100)
            ]
            done.set()
        assert least <= turns[0] <= most


async def test_policy_runs_once_per_list() -> None:
    rule = Moody()
    gateway = new_gateway(rule)
    assert (
        await gateway.tools_cooperatively(a_caller())
        is gateway.tools(a_caller())
        is gateway.search(a_caller(), " ")
    )
    assert gateway.view(a_caller(), "count", len) == len(TOOLS)

    async def names(tools: object) -> str:
        assert tools is gateway.tools(a_caller())
        return "made"

    assert await gateway.view_cooperatively(a_caller(), "names", names) == "made"
    assert await gateway.view_cooperatively(a_caller(), "names", names) == "made"
    assert gateway.search(a_caller(), "tool-3")[0].local == "tool-3"
    assert rule.asked == len(TOOLS)


@pytest.mark.usefixtures("slow")
async def test_audience_change_gives_no_mixed_list() -> None:
    rule = Moody()
    gateway = new_gateway(rule)

    async def turn() -> None:
        while rule.asked < cooperative.ITEMS_PER_CLOCK_CHECK:
            await checkpoint()
        rule.strict = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turn)
        assert await gateway.tools_cooperatively(a_caller()) == ()
    rule.strict = False
    assert len(await gateway.tools_cooperatively(a_caller())) == len(gateway.tools(a_caller())) == len(TOOLS)


def test_rendered_lists_are_cached_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_state, "_MAX_CACHED_VIEW_BYTES", 250)
    monkeypatch.setattr(catalog_state, "_UNCHECKED_VIEW_BYTES", 50)
    gateway, made = new_gateway(Moody()), list[str]()

    def ask(spelling: str) -> None:
        def render(tools: object) -> bytes:
            made.append(spelling)
            return b"x" * 100

        assert len(gateway.view(a_caller(), spelling, render)) == 100

    for spelling in "aabbabcbca":
        ask(spelling)
    assert made == ["a", "b", "c", "a"]
