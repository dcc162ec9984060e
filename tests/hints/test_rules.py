"""Every broken rule of hints is reported with its path."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hints.hint_texts import reported
from tests.hints.values import NAMES, RICH, shares, sound_hints
from toolcrib import hints
from toolcrib.hints import (
    Alignment,
    Dependency,
    Evidence,
    Hints,
    Impact,
    NextAction,
    Resource,
    ResourceFacts,
    Risk,
    alignment,
    faults,
    impact,
)
from toolcrib.hints.rules import checked
from toolcrib.hints.value_types import (
    MAX_ITEMS,
    MAX_TEXT_CHARACTERS,
    SHARE,
    TEXTS,
)

NAN, INF = float("nan"), float("inf")
ENDLESS: dict[str, Any] = {}
ENDLESS["again"] = ENDLESS


def only(hints: Hints) -> str:
    """The only fault."""
    (fault,) = faults(hints)
    return fault


def with_action(**changes: Any) -> Hints:
    return replace(RICH, suggested_next_actions=(replace(RICH.suggested_next_actions[0], **changes),))


def with_resource(**changes: Any) -> Hints:
    return replace(RICH, related_resources=(replace(RICH.related_resources[0], **changes),))


@pytest.mark.requirement("E7")
def test_rich_hints_break_no_rule() -> None:
    assert faults(RICH) == ()


@pytest.mark.requirement("E7")
@settings(max_examples=30)
@given(sound_hints)
def test_valid_hints_have_no_faults(hints: Hints) -> None:
    assert faults(hints) == ()


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("value", [1.7, -0.1, NAN, INF, True, "0.5", None, 10**40, 1 + 0j])
def test_confidence_is_a_number_from_0_to_1(value: Any) -> None:
    fault = only(replace(RICH, confidence=value))
    assert fault.startswith("agentHints.confidence is ")
    assert fault.endswith(f": give {SHARE.description}")


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "hints, path, wanted",
    [
        (replace(RICH, source_quality="great"), "sourceQuality", "one of high, medium, low, unknown"),
        (replace(RICH, source_quality=["high"]), "sourceQuality", "one of high"),
        (replace(RICH, validity_period="forever"), "validityPeriod", "one of immediate, short"),
        (replace(RICH, context_needed=["a list"]), "contextNeeded", "a tuple of at most 64"),
        (replace(RICH, context_needed="text"), "contextNeeded", "a tuple of at most 64"),
        (replace(RICH, assumptions=("fine", 7)), "assumptions[1]", "a text of 1 to 2000"),
        (replace(RICH, assumptions=("x",) * (MAX_ITEMS + 1)), "assumptions", "a tuple of at most 64"),
        (replace(RICH, constraints=("",)), "constraints[0]", "a text of 1 to 2000"),
        (replace(RICH, reasoning="x" * (MAX_TEXT_CHARACTERS + 1)), "reasoning", "a text of 1 to 2000"),
        (replace(RICH, reasoning="\ud800"), "reasoning", "a text of 1 to 2000"),
        (replace(RICH, risk_factors=[*RICH.risk_factors]), "riskFactors", "a tuple of at most 64"),
        (replace(RICH, warnings=RICH.warnings * 65), "warnings", "a tuple of at most 64"),
        (replace(RICH, risk_factors=({"type": "cost"},)), "riskFactors[0]", "Risk"),
        (replace(RICH, estimated_impact=None), "estimatedImpact", "Impact"),
        (replace(RICH, metadata="me"), "metadata", "Provenance"),
        (replace(RICH, evidence=Evidence(freshness=3)), "evidence.freshness", "a number from 0 to 1"),
        (with_action(action="Look it up!"), "suggestedNextActions[0].action", "a name in kebab-case"),
        (with_action(action=""), "suggestedNextActions[0].action", "a name in kebab-case"),
        (with_action(action="a" * 400), "suggestedNextActions[0].action", "a name in kebab-case"),
        (with_action(priority="urgent"), "suggestedNextActions[0].priority", "one of critical, high"),
        (with_action(estimated_time=-1), "suggestedNextActions[0].estimatedTime", "not negative"),
        (with_action(estimated_cost=INF), "suggestedNextActions[0].estimatedCost", "not negative"),
        (with_action(reversible=1), "suggestedNextActions[0].reversible", "true or false"),
        (with_action(category="fun"), "suggestedNextActions[0].category", "one of exploration"),
        (with_action(data=[1]), "suggestedNextActions[0].data", "an object of JSON"),
        (with_action(data={1: 2}), "suggestedNextActions[0].data", "an object of JSON"),
        (with_action(data={"a": NAN}), "suggestedNextActions[0].data", "an object of JSON"),
        (with_action(data={"a": {1, 2}}), "suggestedNextActions[0].data", "an object of JSON"),
        (with_action(data={"a": "\ud800"}), "suggestedNextActions[0].data", "an object of JSON"),
        (with_action(data={"a": "x" * 5_000}), "suggestedNextActions[0].data", "an object of JSON"),
        (with_action(data={"a": [[]] * 5_000}), "suggestedNextActions[0].data", "an object of JSON"),
        (with_action(data=ENDLESS), "suggestedNextActions[0].data", "an object of JSON"),
        (with_resource(relevance=1.01), "relatedResources[0].relevance", "a number from 0 to 1"),
        (with_resource(id=None), "relatedResources[0].id", "a text of 1 to 2000"),
    ],
)
def test_each_broken_rule_is_named_with_its_path(hints: Hints, path: str, wanted: str) -> None:
    fault = only(hints)
    assert fault.startswith(f"agentHints.{path} is ")
    assert f": give {wanted}" in fault or fault.endswith(wanted)


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "facts, wrong",
    [
        (ResourceFacts(quality="high", freshness="current"), None),
        (ResourceFacts(quality=0.4, freshness=1), None),
        (ResourceFacts(quality=1.2), "quality"),
        (ResourceFacts(quality="superb"), "quality"),  # pyright: ignore[reportArgumentType]
        (ResourceFacts(freshness=-0.1), "freshness"),
        (ResourceFacts(access_count=2.5), "accessCount"),  # pyright: ignore[reportArgumentType]
        (ResourceFacts(access_count=True), "accessCount"),
        (ResourceFacts(last_accessed="2030-01-31"), None),
        (ResourceFacts(last_accessed="2030-01-31T12:00:00.123+02:00"), None),
        (ResourceFacts(last_accessed="2030-01-31 12:00"), "lastAccessed"),
        (ResourceFacts(last_accessed="2030-02-30"), "lastAccessed"),
        (ResourceFacts(last_accessed="yesterday"), "lastAccessed"),
    ],
)
def test_quality_and_freshness_are_a_word_or_a_number(facts: ResourceFacts, wrong: str | None) -> None:
    found = faults(with_resource(metadata=facts))
    assert [fault.split(" is ")[0] for fault in found] == (
        [f"agentHints.relatedResources[0].metadata.{wrong}"] if wrong else []
    )


@pytest.mark.requirement("E7")
@given(shares, shares, st.floats(0, 20))
def test_roi_is_benefit_by_effort(benefit: float, effort: float, roi: float) -> None:
    own = impact(benefit, effort)
    assert faults(replace(RICH, estimated_impact=own)) == ()
    wanted = own.benefit / own.effort if own.effort else 0.0
    given_ = replace(RICH, estimated_impact=replace(own, roi=roi))
    assert bool(faults(given_)) == (abs(roi - wanted) > 0.01 * max(1.0, wanted))


@pytest.mark.requirement("E7")
def test_roi_without_effort_is_zero() -> None:
    assert faults(replace(RICH, estimated_impact=Impact(benefit=0.5))) == ()
    fault = only(replace(RICH, estimated_impact=Impact(benefit=0.5, roi=1.0)))
    assert reported((fault,), "roi without effort", "agentHints.estimatedImpact.roi")
    smallest = Impact(benefit=1.0, effort=5e-324, roi=1.0)
    assert "estimatedImpact.roi" in only(replace(RICH, estimated_impact=smallest))


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "word, score, agrees",
    [
        ("strong", 0.9, True),
        ("strong", -0.9, False),
        ("moderate", 0.5, True),
        ("moderate", 0.0, False),
        ("weak", 0.01, True),
        ("weak", -0.01, False),
        ("neutral", 0.0, True),
        ("neutral", 0.25, True),
        ("neutral", -0.26, False),
        ("conflict", -0.01, True),
        ("conflict", 0.0, False),
    ],
)
def test_alignment_word_must_agree_with_score(word: Any, score: float, agrees: bool) -> None:
    said = Alignment(action="go-on", preference="calm", alignment=word, score=score)
    found = faults(replace(RICH, preference_alignment=(said,)))
    assert (found == ()) == agrees
    assert all(fault.startswith("agentHints.preferenceAlignment[0].score is ") for fault in found)


@pytest.mark.requirement("E7")
@given(st.floats(-1, 1))
def test_alignment_word_of_any_score_is_valid(score: float) -> None:
    assert faults(replace(RICH, preference_alignment=(alignment("go-on", "calm", score),))) == ()


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("score", [1.1, -1.1, NAN])
def test_score_out_of_range_is_refused(score: float) -> None:
    found = only(replace(RICH, preference_alignment=(alignment("go-on", "calm", score),)))
    assert found.startswith("agentHints.preferenceAlignment[0].score is ")
    assert "from -1 to 1" in found


def chain(*names: str) -> tuple[Dependency, ...]:
    """A chain of dependencies."""
    return tuple(Dependency(action=name, depends_on=(other,)) for name, other in pairwise(names))


@pytest.mark.requirement("E7")
@given(st.permutations(NAMES), st.integers(2, len(NAMES)))
def test_cyclic_dependencies_are_refused(names: list[str], size: int) -> None:
    line = names[:size]
    assert faults(Hints(confidence=0.5, dependencies=chain(*line))) == ()
    fault = only(Hints(confidence=0.5, dependencies=chain(*line, line[0])))
    assert fault.startswith("agentHints.dependencies ")
    assert all(name in fault for name in line)


@pytest.mark.requirement("E7")
def test_action_must_not_depend_on_itself() -> None:
    fault = only(Hints(confidence=0.5, dependencies=chain("tidy-up", "tidy-up")))
    assert "(tidy-up -> tidy-up)" in fault


@pytest.mark.requirement("E7")
def test_prerequisites_count_as_dependencies() -> None:
    waits = NextAction(action="a", priority="low", prerequisites=("b",))
    back = NextAction(action="b", priority="low", prerequisites=("a",))
    fault = only(Hints(confidence=0.5, suggested_next_actions=(waits, back)))
    assert fault.startswith("agentHints.suggestedNextActions ")
    mixed = Hints(confidence=0.5, suggested_next_actions=(waits,), dependencies=chain("b", "a"))
    assert " -> " in fault
    assert " -> " in only(mixed)


@pytest.mark.requirement("E7")
def test_every_broken_rule_is_reported() -> None:
    worst = replace(
        RICH,
        confidence=1.7,
        estimated_impact=Impact(benefit=0.5, effort=0.1, roi=3),
        dependencies=chain("b", "c", "b"),
        risk_factors=(Risk(type="cost", severity="low", description="", probability=2, impact=0.1),),
    )
    assert reported(
        faults(worst),
        "five broken rules",
        "agentHints.confidence",
        "agentHints.riskFactors[0].description",
        "agentHints.riskFactors[0].probability",
        "agentHints.estimatedImpact.roi",
        "agentHints.dependencies",
    )


class Secret:
    """An object whose repr is secret."""

    def __repr__(self) -> str:
        return "password=hunter2"


@pytest.mark.parametrize(
    "value, said",
    [
        (Secret(), "of the kind Secret"),
        ("p" * 41, "a text of 41 characters"),
        ({"password": 1}, "an object"),
        ([1, 2], "a list of 2"),
        (None, "null"),
        (False, "false"),
        pytest.param(10**5_000, "too large", id="huge"),
    ],
)
def test_fault_shows_only_the_kind_of_a_value(value: Any, said: str) -> None:
    assert f"agentHints.confidence is {said}: " in only(replace(RICH, confidence=value))


def test_checked_hints_are_checked_again_only_after_change() -> None:
    hints = replace(RICH)
    assert not hints.sound
    assert checked(hints).sound
    assert not hints.but(reasoning="Another").sound
    assert not replace(hints, confidence=1.7).sound
    assert faults(hints.but(confidence=1.7)) != ()


def test_tool_names_of_every_style_are_valid_actions() -> None:
    names = (
        "get-card",
        "get_card",
        "cards:get-card",
        "cards:Card.get",
        "github:repos/list",
        "décks:chercher",
    )
    actions = tuple(NextAction(action=name, priority="low") for name in names)
    assert faults(Hints(confidence=0.5, suggested_next_actions=actions)) == ()


def test_str_subclasses_are_texts() -> None:
    class CardId(str):
        __slots__ = ()

    resource = Resource(type="card", id=CardId("card_7"), label="Paris", relevance=1)
    hints = Hints(confidence=0.5, related_resources=(resource,))
    assert faults(hints) == ()
    assert hints.as_json()["relatedResources"][0]["id"] == "card_7"


@pytest.mark.parametrize("value", [None, {"confidence": 1}, type("Other", (Hints,), {})(confidence=0.5)])
def test_other_types_are_not_hints(value: Any) -> None:
    assert faults(value)[0].endswith(": give Hints")


# --- bounds between fields ---


def _aligned(word: Any, score: float) -> Hints:
    one = Alignment(action="pay", preference="thrift", alignment=word, score=score)
    return Hints(confidence=0.5, preference_alignment=(one,))


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "word, score, wanted",
    [
        ("conflict", 0.0, "below 0"),
        ("conflict", -0.01, None),
        ("neutral", 0.26, "within 0.25 of 0"),
        ("neutral", 0.25, None),
        ("neutral", -0.25, None),
        ("weak", 0.0, "above 0"),
        ("strong", -0.3, "above 0"),
        ("strong", 0.01, None),
    ],
)
def test_alignment_fault_names_the_allowed_range(word: str, score: float, wanted: str | None) -> None:
    found = faults(_aligned(word, score))
    assert len(found) == (wanted is not None)
    assert all(each.startswith(f"agentHints.preferenceAlignment[0].score is {score:g}: ") for each in found)
    assert all(each.endswith(f"{word} is {wanted}") for each in found)


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "benefit, effort, roi, wanted",
    [
        (0.0, 1.0, 0.01, None),
        (0.0, 1.0, 0.011, "0"),
        (0.5, 0.5, 1.009, None),
        (0.5, 0.5, 1.015, "1"),
        (0.1, 1.0, 0.11, None),
        (0.1, 1.0, 0.115, "0.1"),
        (1.0, 0.1, 10.1, None),
        (1.0, 0.1, 10.2, "10"),
        (0.5, 0.0, 0.0, None),
        (0.5, 0.0, 0.5, "0"),
    ],
)
def test_roi_tolerance_is_one_percent(benefit: float, effort: float, roi: float, wanted: str | None) -> None:
    said = Hints(confidence=0.5, estimated_impact=Impact(benefit=benefit, effort=effort, roi=roi))
    found = faults(said)
    assert len(found) == (wanted is not None)
    assert all(each.startswith(f"agentHints.estimatedImpact.roi is {roi:g}: ") for each in found)
    assert all(each.endswith(f" {wanted}") for each in found)


@pytest.mark.parametrize("said, told", [(None, "null"), ({"confidence": 1}, "an object"), (7, "7")])
def test_fault_names_a_value_that_is_not_hints(said: Any, told: str) -> None:
    (fault,) = faults(said)
    assert fault.startswith(f"agentHints is {told}: ")


def test_faults_of_lists_and_words_name_the_expectation() -> None:
    facts = ResourceFacts(quality=1.2)
    said = Hints(confidence=0.5, related_resources=(replace(hints.resource("card", "c1"), metadata=facts),))
    place = "agentHints.relatedResources[0].metadata.quality"
    assert reported(faults(said), "a quality above 1", place)
    (fault,) = faults(replace(RICH, context_needed=["a list"]))
    assert fault.endswith(f": give {TEXTS.description}")
