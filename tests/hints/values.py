"""Strategies for valid hints, and one rich example."""

from typing import Any, get_args

from hypothesis import strategies as st

from toolcrib.hints import (
    Alignment,
    Alternative,
    Caution,
    Dependency,
    Hints,
    Impact,
    NextAction,
    Provenance,
    Resource,
    ResourceFacts,
    Risk,
    impact,
)
from toolcrib.model.hints import (
    ActionCategory,
    AlignmentWord,
    DependencyType,
    Freshness,
    Level,
    Quality,
    RiskType,
    Validity,
    WarningType,
)

NAMES = ("look-up", "cards:get-card", "get_card", "review.next", "v2", "tidy-up")
shares = st.floats(0, 1) | st.integers(0, 1)
amounts = st.floats(0, 1e9) | st.integers(0, 10**12)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
lists = st.lists(texts, max_size=3).map(tuple)
flags = st.booleans() | st.none()
moments = st.datetimes().map(lambda each: each.isoformat())
objects = st.dictionaries(texts, st.none() | st.booleans() | st.integers(-99, 99) | texts | lists, max_size=2)


def words(kind: object) -> st.SearchStrategy[Any]:
    """A value of a Literal type."""
    return st.sampled_from(get_args(kind))


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Such a value or None."""
    return st.none() | values


@st.composite
def waits(draw: st.DrawFn) -> tuple[str, tuple[str, ...]]:
    """A name and names before it in a fixed order, so that dependencies have no cycle."""
    place = draw(st.integers(0, len(NAMES) - 1))
    return NAMES[place], tuple(draw(st.lists(st.sampled_from(NAMES[:place]), max_size=2)) if place else ())


@st.composite
def actions(draw: st.DrawFn) -> NextAction:
    name, others = draw(waits())
    return NextAction(
        action=name,
        priority=draw(words(Level)),
        data=draw(maybe(objects)),
        description=draw(maybe(texts)),
        estimated_time=draw(maybe(amounts)),
        estimated_cost=draw(maybe(amounts)),
        category=draw(maybe(words(ActionCategory))),
        prerequisites=others,
        expected_outcome=draw(maybe(texts)),
        reversible=draw(flags),
        confidence=draw(maybe(shares)),
    )


@st.composite
def dependencies(draw: st.DrawFn) -> Dependency:
    name, others = draw(waits())
    return Dependency(
        action=name, depends_on=others, type=draw(words(DependencyType)), reason=draw(maybe(texts))
    )


@st.composite
def alignments(draw: st.DrawFn) -> Alignment:
    word = draw(words(AlignmentWord))
    scores = {"neutral": st.floats(-0.2, 0.2), "conflict": st.floats(-1, -0.01)}
    return Alignment(
        action=draw(st.sampled_from(NAMES)),
        preference=draw(texts),
        alignment=word,
        score=draw(scores.get(word, st.floats(0.01, 1))),
        explanation=draw(maybe(texts)),
    )


@st.composite
def impacts(draw: st.DrawFn) -> Impact:
    return impact(draw(shares), draw(shares), *draw(lists))


facts = st.builds(
    ResourceFacts,
    category=maybe(texts),
    last_accessed=maybe(moments),
    access_count=maybe(st.integers(0, 10**9)),
    quality=maybe(words(Quality) | shares),
    freshness=maybe(words(Freshness) | shares),
)
resources = st.builds(Resource, type=texts, id=texts, label=texts, relevance=shares, metadata=maybe(facts))
risks = st.builds(
    Risk,
    type=words(RiskType),
    severity=words(Level),
    description=texts,
    probability=shares,
    impact=shares,
    mitigation=maybe(texts),
)
cautions = st.builds(
    Caution,
    type=words(WarningType),
    severity=words(Level),
    message=texts,
    related_ids=lists,
    suggested_fix=maybe(texts),
    auto_fixable=flags,
)
alternatives = st.builds(
    Alternative,
    approach=texts,
    confidence=shares,
    reasoning=texts,
    pros=lists,
    cons=lists,
    estimated_impact=maybe(shares),
)
provenances = st.builds(
    Provenance,
    generated_at=moments,
    generated_by=texts,
    model_version=maybe(texts),
    processing_time=maybe(amounts),
)


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Up to two of them."""
    return st.lists(values, max_size=2).map(tuple)


sound_hints: st.SearchStrategy[Hints] = st.builds(
    Hints,
    suggested_next_actions=several(actions()),
    related_resources=several(resources),
    confidence=shares,
    source_quality=words(Quality),
    validity_period=words(Validity),
    context_needed=lists,
    assumptions=lists,
    risk_factors=several(risks),
    dependencies=several(dependencies()),
    estimated_impact=impacts(),
    preference_alignment=several(alignments()),
    reasoning=maybe(texts),
    warnings=several(cautions),
    alternatives=several(alternatives),
    constraints=lists,
    metadata=maybe(provenances),
)

RICH = Hints(
    suggested_next_actions=(
        NextAction(
            action="review-next-card",
            priority="high",
            category="learning",
            data={"deck": "deck_9", "places": [1, 2]},
            expected_outcome="The momentum is kept",
            confidence=0.92,
        ),
        NextAction(action="adjust-difficulty", priority="medium", prerequisites=("review-next-card",)),
    ),
    related_resources=(
        Resource(
            type="deck",
            id="deck_9",
            label="Sums",
            relevance=1.0,
            metadata=ResourceFacts(quality="high", freshness=0.8, last_accessed="2030-01-31T12:00:00Z"),
        ),
    ),
    confidence=0.95,
    source_quality="high",
    validity_period="short",
    context_needed=("how the last week went",),
    assumptions=("The card was read with care",),
    risk_factors=(
        Risk(type="user-experience", severity="low", description="Tiring", probability=0.2, impact=0.1),
    ),
    dependencies=(
        Dependency(action="adjust-difficulty", depends_on=("review-next-card",), type="recommended"),
    ),
    estimated_impact=Impact(benefit=0.85, effort=0.2, roi=4.25, affected_metrics=("retention",)),
    preference_alignment=(
        Alignment(action="review-next-card", preference="steady-learning", alignment="strong", score=0.9),
    ),
    reasoning="The schedule and the last reviews agree",
    warnings=(Caution(type="performance", severity="low", message="Slower than usual", auto_fixable=False),),
    alternatives=(Alternative(approach="Stop for today", confidence=0.3, reasoning="It is late"),),
    constraints=("Within this session",),
    metadata=Provenance(generated_at="2030-01-31T12:00:00+00:00", generated_by="cards"),
)
"""No field is empty."""
