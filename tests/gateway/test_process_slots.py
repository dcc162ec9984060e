"""The call limit of the process: excess is refused, and slots are reserved for operators."""

from collections.abc import Awaitable, Callable
from typing import cast

import anyio
import pytest

from tests.gateway.multi_round_client import multi_round_client, seat, state_of
from tests.gateway.resource_host import materials
from tests.gateways import InProcessGateway, open_gateway
from toolcrib.catalog import Catalog
from toolcrib.gateway import Completion, Gateway, ProcessSlots
from toolcrib.gateway.suspended_calls import SuspensionLimits
from toolcrib.interfaces import Handler, Offer
from toolcrib.model import Call, Channel, JsonObject, Result, Tool, Unanswered
from toolcrib.policy import PermissionsRule, Policy
from toolcrib.sdk import AnyTool, create_tool
from toolcrib.testing import Recordings, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I10")]
YES: JsonObject = {"action": "accept", "content": {"seat": "12A"}}
CONFIG = "limits: {process: 32, per_user: null}"


def test_slots_are_kept_for_the_operator() -> None:
    slots = ProcessSlots(32)
    assert [sum(slots.take(key) for _ in range(40)) for key in ("a", "b", "admin")] == [24, 6, 2]
    for total in (1, 2):
        small = ProcessSlots(total)
        assert [small.take("a"), small.take("b"), small.take("admin")] == [True, False, total > 1]


class Held:
    """A tool that waits until it is released."""

    def __init__(self) -> None:
        self.go, self.running = anyio.Event(), 0

    def tools(self) -> list[AnyTool]:
        @create_tool(category="query", timeout=30)
        async def hold() -> bool:
            """Wait."""
            self.running += 1
            await self.go.wait()
            return True

        @create_tool(category="query")
        async def answer() -> bool:
            """Answer at once."""
            return True

        return [hold, answer]


async def codes(opened: InProcessGateway, key: str, name: str, times: int, found: list[str | None]) -> None:
    async def one() -> None:
        found.append((await opened.call(name, {}, key=key)).code)

    async with anyio.create_task_group() as tasks:
        for _ in range(times):
            tasks.start_soon(one)


async def test_excess_is_refused_by_principal_and_operators_get_in() -> None:
    held, found = Held(), list[str | None]()
    async with open_gateway(CONFIG, tools=held.tools()) as opened:
        flood, other = await opened.key("flood"), await opened.key("other")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(codes, opened, flood, "hold", 60, found)
            await anyio.wait_all_tasks_blocked()
            assert found == ["OVERLOADED"] * 36
            refused = await opened.call("hold", {}, key=flood)
            assert (refused.status, refused.json["error"]["retryAfter"]) == (503, 1.0)
            assert (await opened.call("answer", {}, key=other)).code is None
            tasks.start_soon(codes, opened, other, "hold", 60, found)
            await anyio.wait_all_tasks_blocked()
            assert (await opened.call("answer", {}, key=other)).code == "OVERLOADED"
            assert (await opened.call("answer", {})).code is None
            held.go.set()
        assert found.count(None) == 24 + 6
        assert (await opened.call("answer", {}, key=flood)).code is None


async def test_call_that_waits_for_an_answer_holds_no_slot() -> None:
    slots = ProcessSlots(4)
    async with multi_round_client(slots=slots) as client:
        states = [state_of(await client.say()) for _ in range(8)]
        assert slots.used == 0
        for state in states:
            assert (await client.say(state, {"q1": YES})).data == YES
        assert (slots.used, slots.by_principal) == (0, {})


ASKED: dict[str, Callable[[Gateway], Awaitable[Result]]] = {
    "call": lambda gateway: gateway.call("x:a", {}, a_caller()),
    "asked": lambda gateway: gateway.call("x:a", {}, a_caller(), channel=cast("Channel", object())),
    "resource": lambda gateway: gateway.resource_access.read("x://1", a_caller(), {}),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
async def test_tool_without_a_chain_takes_no_slot(ask: Callable[[Gateway], Awaitable[Result]]) -> None:
    def compose(tool: Tool) -> Handler:
        raise LookupError(tool.name)

    slots, ids = ProcessSlots(4), iter(range(100))
    gateway = Gateway(
        Policy([PermissionsRule()]),
        compose,
        Completion(lambda _tool: (1.0, 0.0, 0)),
        Recordings(),
        new_id=lambda: f"id-{next(ids)}",
        contexts=dict,
        slots=slots,
    )
    catalog = Catalog(["x"])
    catalog.listen(gateway.adopt)
    catalog.replace("x", Offer(tools=[a_tool("x:a")], materials=materials(["x://1"])))
    with pytest.raises(LookupError):
        await ask(gateway)
    assert (slots.used, slots.by_principal) == (0, {})


async def test_one_principal_parks_no_more_than_its_share() -> None:
    async def ask(call: Call) -> Result:
        try:
            return await seat(call)
        except Unanswered:
            return Result(data="full")

    async with multi_round_client(ask, places=SuspensionLimits(max_calls=4, per_caller=16)) as client:
        mine = [await client.say(caller=a_caller(id=f"user:{n}", key="a")) for n in range(5)]
        assert [each.ask is not None for each in mine] == [True, True, True, False, False]
        assert (await client.say(caller=a_caller(id="user:9", key="b"))).ask is not None
