"""What steps keep for a source goes with it."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from toolcrib.catalog.catalog import Snapshot
from toolcrib.model import Tool
from toolcrib.runtime.step_order import forget_gone
from toolcrib.steps.breaker import Breaker
from toolcrib.steps.bulkhead import Bulkhead
from toolcrib.steps.retry import Retry
from toolcrib.testing import a_tool

pytestmark = pytest.mark.requirement("I5")


class Offered:
    """The tools of a snapshot."""

    def __init__(self, *tools: Tool) -> None:
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}


def kept(step: Breaker | Retry | Bulkhead) -> set[str]:
    """Return the sources a step keeps something for."""
    fields: dict[str, Any] = vars(step)
    return {name for field in ("_circuits", "_budgets", "_slots") for name in fields.get(field, ())}


def test_removed_sources_leave_nothing_in_the_steps() -> None:
    steps = (Breaker(), Retry(), Bulkhead())
    gone, stays = a_tool("gone:a", family="mcp"), a_tool("stays:a", family="mcp")
    for step in steps:
        for tool in (gone, stays):
            step.fit(tool)
        assert kept(step) == {"gone", "stays"}
    forget_gone(steps, cast("Snapshot", Offered(stays)))
    assert [kept(step) for step in steps] == [{"stays"}] * 3


def test_slots_in_use_are_kept_until_they_are_free() -> None:
    bulkhead, tool = Bulkhead(), a_tool("gone:a")
    bulkhead.fit(tool)
    slots = vars(bulkhead)["_slots"]["gone"]
    assert slots.take("key")
    bulkhead.retain(set())
    assert kept(bulkhead) == {"gone"}
    slots.release("key")
    bulkhead.retain(set())
    assert kept(bulkhead) == set()
