"""The demonstration's tools are good examples, and work."""

from typing import Any

import pytest

from tests.texts import matches
from toolcrib.errors import BusinessRuleError
from toolcrib.model import Progress
from toolcrib.schemas import compile_schema
from toolcrib.sdk import AnyTool, Registry, ToolContext
from toolcrib.sources.functions import Functions, load_module
from toolcrib.testing import a_call

TOOLS = load_module("toolcrib.demo.tools")


def named(name: str) -> AnyTool:
    return next(each for each in TOOLS if each.name == name)


async def call(name: str, arguments: dict[str, Any]) -> Any:
    made = named(name)
    return (await Functions("demo", TOOLS).call(a_call(made.bind("demo"), arguments=arguments))).data


def test_they_are_a_handful() -> None:
    expected = ["add-numbers", "roll-dice", "convert-units", "count-words", "slow-countdown"]
    assert [each.name for each in TOOLS] == expected


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("made", TOOLS, ids=lambda made: made.name)
def test_nothing_falls_short(made: AnyTool) -> None:
    assert Registry().validate(made) == []


@pytest.mark.parametrize("made", TOOLS, ids=lambda made: made.name)
def test_example_results_match_output_schema(made: AnyTool) -> None:
    output = made.definition.output_schema
    assert output is not None
    for example in made.definition.examples:
        assert compile_schema(output).faults(example.expected) == ()


@pytest.mark.parametrize("name", ["add-numbers", "convert-units", "count-words"])
async def test_the_examples_are_true(name: str) -> None:
    for example in named(name).definition.examples:
        given = await call(name, dict(example.params))
        assert given == pytest.approx(example.expected, abs=0.001)


async def test_dice_fall_within_their_sides() -> None:
    for _ in range(50):
        thrown = await call("roll-dice", {"count": 3, "sides": 4})
        assert len(thrown["dice"]) == 3
        assert set(thrown["dice"]) <= {1, 2, 3, 4}
        assert thrown["total"] == sum(thrown["dice"])


@pytest.mark.parametrize(
    "value,unit,to,expected",
    [
        (32, "F", "C", 0),
        (100, "C", "F", 212),
        (-40, "F", "C", -40),
        (1, "lb", "kg", 0.4536),
        (1, "mi", "ft", 5280),
    ],
)
async def test_units_convert(value: float, unit: str, to: str, expected: float) -> None:
    assert await call("convert-units", {"value": value, "unit": unit, "to": to}) == {
        "value": expected,
        "unit": to,
    }


async def test_units_of_different_kinds_do_not() -> None:
    with pytest.raises(BusinessRuleError) as raised:
        await call("convert-units", {"value": 1, "unit": "mi", "to": "kg"})
    assert matches("tools", "units of different kinds do not", str(raised.value))


async def test_the_countdown_reports_every_step() -> None:
    heard: list[Progress] = []

    async def report(progress: Progress) -> None:
        heard.append(progress)

    made = named("slow-countdown")
    context = ToolContext.of(a_call(report=report))
    given = await made(context, 0, 3)
    assert (given.seconds, given.steps) == (0, 3)
    assert [(each.done, each.total, each.message) for each in heard] == [
        (0, 3, "3 to go"),
        (1, 3, "2 to go"),
        (2, 3, "1 to go"),
    ]
