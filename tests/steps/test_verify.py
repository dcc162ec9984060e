"""Verify: answers and hints that break their contract are errors."""

from math import inf, nan
from typing import Any

import pytest

from toolcrib.errors import Broken, BusinessRuleError, problem
from toolcrib.interfaces import Handler
from toolcrib.model import Ask, Call, Family, Hints, Json, Result
from toolcrib.model.hints import Dependency, Impact, NextAction
from toolcrib.steps.verify import Verify
from toolcrib.testing import a_call, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E7", "E10")]
GOOD = Hints(confidence=0.9, suggested_next_actions=(NextAction(action="review-card", priority="high"),))
UNRANKED = NextAction(action="review-card", priority=None)  # pyright: ignore[reportArgumentType]
CIRCLE = (Dependency(action="a", depends_on=("b",)), Dependency(action="b", depends_on=("a",)))
BROKEN: list[tuple[Hints, str]] = [
    (Hints(confidence=1.7), "agentHints.confidence: give a number from 0 to 1"),
    (Hints(confidence=-0.1), "agentHints.confidence: give a number from 0 to 1"),
    (Hints(confidence=nan), "agentHints.confidence"),
    (Hints(confidence=inf), "agentHints.confidence"),
    (Hints(confidence=True), "agentHints.confidence"),
    (Hints(confidence=None), "agentHints.confidence"),  # pyright: ignore[reportArgumentType]
    (
        Hints(confidence=0.5, suggested_next_actions=(UNRANKED,)),
        "agentHints.suggestedNextActions[0].priority",
    ),
    (Hints(confidence=0.5, dependencies=CIRCLE), "circle"),
    (Hints(confidence=0.5, estimated_impact=Impact(benefit=0.8, effort=0.2, roi=1.0)), "roi"),
    (Hints(confidence=0.5, source_quality="superb"), "agentHints.sourceQuality"),  # pyright: ignore[reportArgumentType]
    (Hints(confidence=0.5, assumptions=None), "agentHints.assumptions"),  # pyright: ignore[reportArgumentType]
]


def answering(**fields: Any) -> Handler:
    async def answer(_call: Call) -> Result:
        return Result(**fields)

    return answer


async def verified(last: Handler) -> Result:
    return await Verify().fit(a_tool())(a_call(), last)


@pytest.mark.parametrize("hints, rule", BROKEN)
@pytest.mark.parametrize(
    "fields", [{"data": 1}, {"problem": problem("TOOL_FAILED", "no")}, {"ask": Ask(questions={})}]
)
async def test_hints_that_break_a_rule_break_the_contract(
    fields: dict[str, Any], hints: Hints, rule: str
) -> None:
    with pytest.raises(Broken) as broken:
        await verified(answering(hints=hints, **fields))
    found = broken.value.problem
    assert found.code == "CONTRACT_VIOLATION"
    assert found.message.startswith("fake:echo: agentHints")
    assert rule in found.message


@pytest.mark.requirement("E11")
@pytest.mark.parametrize("hints, rule", BROKEN)
async def test_hints_of_an_error_are_verified(hints: Hints, rule: str) -> None:
    async def fail(_call: Call) -> Result:
        raise BusinessRuleError("DECK_FULL", "the deck is full", hints=hints)

    with pytest.raises(Broken) as broken:
        await verified(fail)
    assert rule in broken.value.problem.message
    # What was raised first stays behind it, for the log.
    assert isinstance(broken.value.__context__, BusinessRuleError)


async def test_valid_hints_are_unchanged() -> None:
    assert (await verified(answering(data=1, hints=GOOD))).hints is GOOD

    async def fail(_call: Call) -> Result:
        raise BusinessRuleError("DECK_FULL", "the deck is full", hints=GOOD)

    with pytest.raises(BusinessRuleError) as raised:
        await verified(fail)
    assert raised.value.hints is GOOD


async def test_at_most_three_broken_rules_are_named() -> None:
    actions = tuple(NextAction(action=f"do-{number}", priority="high", confidence=2) for number in range(5))
    with pytest.raises(Broken) as broken:
        await verified(answering(data=1, hints=Hints(confidence=0.5, suggested_next_actions=actions)))
    said = broken.value.problem.message
    assert said.count(": give") == 3
    assert said.endswith(", and 2 more")


@pytest.mark.requirement("E6")
async def test_blocks_without_data_become_the_data() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

    async def draw(_call: Call) -> Result:
        return Result(content=(image,))

    given = await Verify().fit(a_tool())(a_call(), draw)
    assert (given.data, given.structured, given.content) == ([image], False, (image,))


# --- answers ---


def answering_with(data: Json, hints: Hints | None = None) -> Handler:
    async def answer(_call: Call) -> Result:
        return Result(data=data, hints=hints)

    return answer


NULL = "a successful answer carries data, and this one is null"
NOT_JSON = "an answer must be JSON (whole characters, integers of 64 bits, 250 levels at most)"


@pytest.mark.requirement("E10")
@pytest.mark.parametrize("family, is_held", [("function", True), ("core", True), ("mcp", False)])
async def test_in_process_output_is_checked_against_its_schema(family: Family, is_held: bool) -> None:
    tool = a_tool(family=family, output_schema={"type": "object", "required": ["total"]})
    stage = Verify().fit(tool)
    if not is_held:
        assert (await stage(a_call(tool), answering_with({}))).data == {}
        return
    with pytest.raises(Broken):
        await stage(a_call(tool), answering_with({}))


@pytest.mark.requirement("E10")
@pytest.mark.parametrize(
    "data, rule",
    [
        (None, f"{NULL}; answer with an empty list or object, or raise BusinessRuleError"),
        (object(), f"{NOT_JSON}, and this one is not"),
    ],
)
async def test_invalid_data_names_the_broken_rule(data: Json, rule: str) -> None:
    with pytest.raises(Broken) as broken:
        await Verify().fit(a_tool())(a_call(), answering_with(data))
    assert broken.value.problem.message == f"fake:echo: {rule}"


async def test_text_blocks_without_data_become_the_data() -> None:
    blocks = ({"type": "text", "text": "hello"},)

    async def answer(_call: Call) -> Result:
        return Result(content=blocks)

    result = await Verify().fit(a_tool())(a_call(), answer)
    assert (result.data, result.structured, result.content) == ([*blocks], False, blocks)
    assert result.encoded == b'[{"type":"text","text":"hello"}]'


@pytest.mark.requirement("E7", "E10")
@pytest.mark.parametrize(
    "hints, told",
    [
        (Hints(confidence=2.0), "{confidence}"),
        (
            Hints(confidence=2.0, estimated_impact=Impact(benefit=2.0, effort=2.0, roi=1.0)),
            "{confidence}; {benefit}; {effort}",
        ),
        (
            Hints(confidence=2.0, estimated_impact=Impact(benefit=2.0, effort=2.0, roi=-1.0)),
            "{confidence}; {benefit}; {effort}, and 1 more",
        ),
    ],
)
async def test_further_broken_rules_are_counted(hints: Hints, told: str) -> None:
    share = "give a number from 0 to 1"
    rule = told.format(
        confidence=f"agentHints.confidence: {share}",
        benefit=f"agentHints.estimatedImpact.benefit: {share}",
        effort=f"agentHints.estimatedImpact.effort: {share}",
    )
    with pytest.raises(Broken) as broken:
        await Verify().fit(a_tool())(a_call(), answering_with(1, hints))
    assert broken.value.problem.message == f"fake:echo: {rule}"
    assert "2" in str(broken.value.__cause__)
