"""Callers with little energy see fewer and cheaper tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.model import Tool
from toolcrib.policy.contexts import Context, Contexts
from toolcrib.policy.energy import AWAIT_ENERGY_TOOL, EnergyRule, band_of
from toolcrib.testing import a_caller, a_tool

pytestmark = pytest.mark.requirement("F5")
CONTEXTS = {
    "counted": Context(max_energy_cost=60),
    "needy": Context(min_energy=30),
    "urgent": Context(min_energy=30, urgent=True),
    "plain": Context(),
}
FREE, CHEAP, DEAR, DEARER = (a_tool(f"tools:t{cost}", energy_cost=cost) for cost in (0, 5, 40, 70))
WAITING = a_tool(AWAIT_ENERGY_TOOL, source="crib", family="core")


def _seen(context: str, level: float) -> set[str]:
    rule = EnergyRule(Contexts(CONTEXTS), lambda _: level, 1.0)
    caller = a_caller(context=context)
    tools: tuple[Tool, ...] = (FREE, CHEAP, DEAR, DEARER, WAITING)
    return {tool.local for tool in tools if rule.why_not(tool, caller) is None}


@pytest.mark.parametrize(
    "level,band",
    [
        (100, "high"),
        (50.1, "high"),
        (50, "medium"),
        (20.1, "medium"),
        (20, "low"),
        (0.1, "low"),
        (0, "urgent"),
    ],
)
def test_energy_bands(level: float, band: str) -> None:
    assert band_of(level) == band


def test_small_budgets_see_fewer_and_cheaper_tools() -> None:
    assert _seen("counted", 100) == {"t0", "t5", "t40", "await_energy"}, "70 is more than the context shows"
    assert _seen("counted", 30) == {"t0", "t5", "t40", "await_energy"}
    assert _seen("counted", 10) == {"t0", "t5", "await_energy"}
    assert _seen("counted", -5) == {"t0", "await_energy"}


def test_energy_modes_of_contexts() -> None:
    assert _seen("needy", 29) == {"await_energy"}
    assert _seen("needy", 31) == {"t0", "t5", "t40", "await_energy"}
    assert _seen("urgent", -50) == {"t0", "t5", "t40", "t70", "await_energy"}


def test_energy_is_not_read_if_disabled() -> None:
    assert _seen("plain", -50) == {"t0", "t5", "t40", "t70"}


@given(st.sampled_from(sorted(CONTEXTS)), st.floats(-50, 100), st.floats(-50, 100))
def test_equal_energy_audiences_see_equal_lists(context: str, one: float, other: float) -> None:
    rules = [EnergyRule(Contexts(CONTEXTS), lambda _, level=level: level, 1.0) for level in (one, other)]
    caller = a_caller(context=context)
    if rules[0].audience(caller) == rules[1].audience(caller):
        assert _seen(context, one) == _seen(context, other)


@given(st.floats(-50, 100), st.floats(0, 50))
def test_more_energy_never_hides_a_tool(level: float, more: float) -> None:
    for context in CONTEXTS:
        assert _seen(context, level) <= _seen(context, min(level + more, 100))
