"""Verify: answers and hints that break their contract are errors."""

import re
from math import inf, nan
from typing import Any

import pytest

from tests.texts import matches
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
    (Hints(confidence=1.7), "agentHints.confidence"),
    (Hints(confidence=-0.1), "agentHints.confidence"),
    (Hints(confidence=nan), "agentHints.confidence"),
    (Hints(confidence=inf), "agentHints.confidence"),
    (Hints(confidence=True), "agentHints.confidence"),
    (Hints(confidence=None), "agentHints.confidence"),  # pyright: ignore[reportArgumentType]
    (
        Hints(confidence=0.5, suggested_next_actions=(UNRANKED,)),
        "agentHints.suggestedNextActions[0].priority",
    ),
    (Hints(confidence=0.5, dependencies=CIRCLE), "agentHints.dependencies"),
    (
        Hints(confidence=0.5, estimated_impact=Impact(benefit=0.8, effort=0.2, roi=1.0)),
        "agentHints.estimatedImpact.roi",
    ),
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
@pytest.mark.parametrize("name, data", [("null", None), ("no JSON", object())])
async def test_invalid_data_names_the_broken_rule(name: str, data: Json) -> None:
    with pytest.raises(Broken) as broken:
        await Verify().fit(a_tool())(a_call(), answering_with(data))
    assert broken.value.problem.code == "CONTRACT_VIOLATION"
    assert matches("errors", f"answer that is {name}", broken.value.problem.message)


async def test_text_blocks_without_data_become_the_data() -> None:
    blocks = ({"type": "text", "text": "hello"},)

    async def answer(_call: Call) -> Result:
        return Result(content=blocks)

    result = await Verify().fit(a_tool())(a_call(), answer)
    assert (result.data, result.structured, result.content) == ([*blocks], False, blocks)
    assert result.encoded == b'[{"type":"text","text":"hello"}]'


@pytest.mark.requirement("E7", "E10")
@pytest.mark.parametrize(
    "hints, count",
    [
        (Hints(confidence=2.0), 1),
        (Hints(confidence=2.0, estimated_impact=Impact(benefit=2.0, effort=2.0, roi=1.0)), 3),
        (Hints(confidence=2.0, estimated_impact=Impact(benefit=2.0, effort=2.0, roi=-1.0)), 4),
    ],
)
async def test_further_broken_rules_are_counted(hints: Hints, count: int) -> None:
    with pytest.raises(Broken) as broken:
        await Verify().fit(a_tool())(a_call(), answering_with(1, hints))
    message = broken.value.problem.message
    places = [
        "agentHints.confidence",
        "agentHints.estimatedImpact.benefit",
        "agentHints.estimatedImpact.effort",
    ]
    assert re.findall(r"agentHints[\w.]+", message) == places[:count]
    assert matches("errors", f"{count} broken rules of hints", message)
    assert "2" in str(broken.value.__cause__)
