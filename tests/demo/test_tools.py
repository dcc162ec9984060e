"""The demo tools pass all definition checks and return what their examples state."""

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


def find_tool(name: str) -> AnyTool:
    return next(each for each in TOOLS if each.name == name)


async def call(name: str, arguments: dict[str, Any]) -> Any:
    tool = find_tool(name)
    return (await Functions("demo", TOOLS).call(a_call(tool.bind("demo"), arguments=arguments))).data


def test_demo_has_five_tools() -> None:
    expected = ["add-numbers", "roll-dice", "convert-units", "count-words", "slow-countdown"]
    assert [each.name for each in TOOLS] == expected


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_definitions_have_no_findings(tool: AnyTool) -> None:
    assert Registry().validate(tool) == []


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_example_results_match_output_schema(tool: AnyTool) -> None:
    output = tool.definition.output_schema
    assert output is not None
    for example in tool.definition.examples:
        assert compile_schema(output).faults(example.expected) == ()


@pytest.mark.parametrize("name", ["add-numbers", "convert-units", "count-words"])
async def test_examples_return_their_expected_results(name: str) -> None:
    for example in find_tool(name).definition.examples:
        result = await call(name, dict(example.params))
        assert result == pytest.approx(example.expected, abs=0.001)


async def test_dice_are_within_their_sides() -> None:
    for _ in range(50):
        roll = await call("roll-dice", {"count": 3, "sides": 4})
        assert len(roll["dice"]) == 3
        assert set(roll["dice"]) <= {1, 2, 3, 4}
        assert roll["total"] == sum(roll["dice"])


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
async def test_units_are_converted(value: float, unit: str, to: str, expected: float) -> None:
    assert await call("convert-units", {"value": value, "unit": unit, "to": to}) == {
        "value": expected,
        "unit": to,
    }


async def test_units_of_different_quantities_are_refused() -> None:
    with pytest.raises(BusinessRuleError) as raised:
        await call("convert-units", {"value": 1, "unit": "mi", "to": "kg"})
    assert matches("tools", "units of different quantities are refused", str(raised.value))


async def test_countdown_reports_every_step() -> None:
    reports: list[Progress] = []

    async def report(progress: Progress) -> None:
        reports.append(progress)

    tool = find_tool("slow-countdown")
    context = ToolContext.of(a_call(report=report))
    result = await tool(context, 0, 3)
    assert (result.seconds, result.steps) == (0, 3)
    assert [(each.done, each.total, each.message) for each in reports] == [
        (0, 3, "3 to go"),
        (1, 3, "2 to go"),
        (2, 3, "1 to go"),
    ]
