"""Builders with random arguments: they refuse them or return valid hints."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hints.values import actions, resources, several, shares, sound_hints, words
from toolcrib import hints
from toolcrib.hints import Hints, HintsError
from toolcrib.model import Kind, Problem
from toolcrib.model.hints import Freshness, Quality, Validity

Arguments = dict[str, st.SearchStrategy[Any]]

written = st.text(max_size=12) | st.just("card_7") | st.text(min_size=1, max_size=12)
named = st.none() | st.sampled_from(["get-card", "cards:delete-card"]) | actions()
counts = st.integers(0, 1_000)
things = st.dictionaries(st.text(max_size=3), st.none() | st.integers(), max_size=4)
problems = st.builds(
    Problem,
    code=st.just("TIMEOUT"),
    kind=st.sampled_from(Kind),
    message=st.text(max_size=12),
    retryable=st.booleans(),
    retry_after=st.none() | st.floats(0, 1e6),
    path=st.none() | st.text(max_size=200),
)
thing: Arguments = {"type": written, "id": written, "label": written}
said: Arguments = {
    "next": several(actions()) | st.just("look-up"),
    "related": several(resources),
    "quality": words(Quality) | shares,
    "freshness": words(Freshness) | shares,
    "completeness": shares,
    "validation": shares,
    "valid_for": words(Validity) | st.floats(0, allow_nan=False),
    "assumptions": st.just("All is well"),
    "reasoning": st.just("Because"),
}

BUILDERS: dict[str, tuple[Callable[..., Hints], Arguments, Arguments]] = {
    "found": (hints.found, {"items": st.lists(things, max_size=20) | things}, {"total": counts, **said}),
    "empty": (hints.empty, {}, {"looked_for": written | st.text(), **said}),
    "created": (hints.created, thing, {"read": named, "undo": named, **said}),
    "changed": (hints.changed, thing, {"fields": st.lists(written, max_size=40), "read": named, **said}),
    "removed": (hints.removed, thing, {"undo": named, **said}),
    "computed": (hints.computed, {}, {"method": written, "samples": counts, "enough": counts, **said}),
    "generated": (hints.generated, {}, {"model": written, "reviewed": st.booleans(), **said}),
    "failed": (
        hints.failed,
        {"problem": problems | st.text(max_size=600)},
        {"fix": written | several(actions()), **said},
    ),
    "deprecated": (
        hints.deprecated,
        {"replacement": written | st.just("create-card-v2")},
        {"removal": written | st.dates(), "since": written, "also": sound_hints},
    ),
    "slow": (
        hints.slow,
        {"seconds": st.floats(0, 1e6)},
        {"promised": st.floats(0, 1e6), "also": sound_hints},
    ),
}


def outcome(build: Callable[..., Hints], arguments: dict[str, Any]) -> Hints | tuple[str, ...]:
    """The hints, or the faults."""
    try:
        return build(**arguments)
    except HintsError as refused:
        return refused.faults


@pytest.mark.requirement("E8", "E7")
@pytest.mark.parametrize("name", BUILDERS)
@settings(max_examples=25)
@given(st.data())
def test_builders_give_valid_hints_for_random_arguments(name: str, data: st.DataObject) -> None:
    build, needed, optional = BUILDERS[name]
    arguments = data.draw(st.fixed_dictionaries(needed, optional=optional))
    made = outcome(build, arguments)
    if isinstance(made, tuple):
        assert made
        assert all(": give " in each or " in a circle " in each for each in made)
        return
    assert hints.faults(made.but()) == ()
    assert hints.read(made.as_json()) == made
    if "also" not in arguments:
        assert made.evidence is not None
        assert made.confidence == hints.confidence(made.evidence)


@pytest.mark.requirement("E8")
@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_accepts_the_usual_options(name: str) -> None:
    usual: dict[str, dict[str, Any]] = {
        "found": {"items": [{"id": "card_7"}]},
        "created": {"type": "card", "id": "card_7"},
        "changed": {"type": "card", "id": "card_7"},
        "removed": {"type": "card", "id": "card_7"},
        "failed": {"problem": "There is no card_7."},
        "deprecated": {"replacement": "create-card-v2"},
        "slow": {"seconds": 2.0},
    }
    assert hints.faults(BUILDERS[name][0](**usual.get(name, {})).but()) == ()
