"""Arguments against the schema on the way in, answers against the contract on the way out."""

import pytest

from toolcrib.errors import Broken, Refused, problem
from toolcrib.interfaces import Handler
from toolcrib.model import Call, Json, Result
from toolcrib.steps.validate import Validate
from toolcrib.steps.verify import Verify
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {"when": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
    "required": ["when"],
}


def answering(data: Json) -> Handler:
    async def answer(_call: Call) -> Result:
        return Result(data=data)

    return answer


async def test_valid_arguments_pass() -> None:
    tool = a_tool(input_schema=SCHEMA)
    result = await Validate().fit(tool)(a_call(tool, arguments={"when": "noon", "more": True}), echo)
    assert result.data == {"when": "noon", "more": True}


@pytest.mark.parametrize(
    "arguments, path",
    [
        ({}, "arguments.when"),
        ({"when": 5}, "arguments.when"),
        ({"when": "noon", "count": 0}, "arguments.count"),
        ({"when": "noon", "count": 1.5}, "arguments.count"),
        ({"when": "noon", "count": True}, "arguments.count"),
    ],
)
async def test_invalid_arguments_name_their_path(arguments: Json, path: str) -> None:
    tool = a_tool(input_schema=SCHEMA)
    with pytest.raises(Refused) as refused:
        await Validate().fit(tool)(a_call(tool, arguments=arguments), echo)
    found = refused.value.problem
    assert (found.code, found.path) == ("INVALID_ARGUMENTS", path)
    assert path in found.message


async def test_every_fault_is_reported() -> None:
    tool = a_tool(input_schema=SCHEMA)
    with pytest.raises(Refused) as refused:
        await Validate().fit(tool)(a_call(tool, arguments={"count": 0}), echo)
    faults = refused.value.problem.details["faults"]
    assert {fault["path"] for fault in faults} == {"arguments.when", "arguments.count"}


async def test_an_answer_is_encoded_once() -> None:
    result = await Verify().fit(a_tool())(a_call(), answering({"b": 1, "a": [None, 1.5]}))
    assert result.encoded == b'{"b":1,"a":[null,1.5]}'


@pytest.mark.requirement("E6", "E10")
@pytest.mark.parametrize("data", [None, {"when": object()}, {1: 2, (3,): 4}])
async def test_null_or_non_json_answer_is_contract_violation(data: Json) -> None:
    with pytest.raises(Broken) as broken:
        await Verify().fit(a_tool())(a_call(), answering(data))
    assert broken.value.problem.code == "CONTRACT_VIOLATION"


@pytest.mark.requirement("E10")
async def test_answer_against_output_schema_is_contract_violation() -> None:
    tool = a_tool(output_schema={"type": "object", "required": ["total"]})
    with pytest.raises(Broken, match=r"data\.total\b") as broken:
        await Verify().fit(tool)(a_call(tool), answering({"sum": 1}))
    assert broken.value.problem.code == "CONTRACT_VIOLATION"
    assert (await Verify().fit(tool)(a_call(tool), answering({"total": 1}))).data == {"total": 1}


@pytest.mark.requirement("E10", "E11")
async def test_contract_violation_hides_the_value() -> None:
    tool = a_tool(output_schema={"type": "object", "properties": {"total": {"type": "integer"}}})
    with pytest.raises(Broken) as broken:
        await Verify().fit(tool)(a_call(tool), answering({"total": "hunter2"}))
    rule = "fake:echo: the result does not match the output schema: data.total is not an integer"
    assert broken.value.problem.message == rule


async def test_output_schema_of_mcp_servers_is_not_enforced() -> None:
    tool = a_tool(family="mcp", output_schema={"type": "object", "required": ["total"]})
    assert (await Verify().fit(tool)(a_call(tool), answering({"sum": 1}))).data == {"sum": 1}


async def test_a_failure_is_not_verified() -> None:
    async def fail(_call: Call) -> Result:
        return Result(problem=problem("TOOL_FAILED", "no"))

    assert (await Verify().fit(a_tool())(a_call(), fail)).problem is not None
