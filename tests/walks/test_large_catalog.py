"""Ten thousand tools: what a call and a warm list cost does not grow with the catalog."""

from collections.abc import Hashable, Sequence

import pytest

from toolcrib.catalog import Catalog
from toolcrib.gateway import Completion, Gateway
from toolcrib.interfaces import Handler, Offer, Reason
from toolcrib.model import Caller, Tool
from toolcrib.policy import Context, Contexts, PermissionsRule, Policy
from toolcrib.testing import Recordings, a_caller, a_tool, echo


class Counting:
    """A rule that counts how often it is asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked = 0

    def concerns(self, tool: Tool) -> bool:
        return bool(tool)

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        self.asked += 1
        return None

    def audience(self, caller: Caller) -> Hashable:
        return None


def large(size: int, counting: Counting) -> Gateway:
    contexts = Contexts({"even": Context(tools=("tag:even",))})

    def chain(_tool: Tool) -> Handler:
        return echo

    gateway = Gateway(
        Policy((contexts, PermissionsRule(), counting)),
        chain,
        Completion(lambda _tool: (1.0, 0.0, 0)),
        Recordings(),
        new_id=lambda: "id",
        contexts=lambda: contexts.contexts,
    )
    catalog = Catalog(["many"])
    catalog.listen(gateway.adopt)
    tags = (("even",), ("odd",))
    tools = [a_tool(f"many:tool-{n}", tags=tags[n % 2]) for n in range(size)]
    catalog.replace("many", Offer(tools=tools))
    return gateway


@pytest.mark.parametrize("size", [10, 10_000])
@pytest.mark.slow
@pytest.mark.check(40)
async def test_call_checks_policy_of_one_tool_and_related_once(size: int) -> None:
    counting = Counting()
    gateway = large(size, counting)
    for name in ("many:tool-7", "tool_7", "TOOL-7"):
        counting.asked = 0
        assert (await gateway.call(name, {}, a_caller())).problem is None
        assert counting.asked <= 1 + 4, "the tool, and at first those that are named beside it"
    counting.asked = 0
    await gateway.call("many:tool-7", {}, a_caller())
    assert counting.asked == 1


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.check(40)
async def test_a_warm_filtered_list_is_bytes_that_are_there_already() -> None:
    counting, rendered = Counting(), list[int]()
    gateway = large(10_000, counting)

    def render(tools: Sequence[Tool]) -> bytes:
        rendered.append(len(tools))
        return b",".join(tool.name.encode() for tool in tools)

    first = gateway.view(a_caller(id="a", context="even"), "names", render)
    counting.asked = 0
    again = gateway.view(a_caller(id="b", context="even"), "names", render)
    assert again is first
    assert (counting.asked, rendered) == (0, [5_000])
