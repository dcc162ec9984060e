"""Validation of arguments: every fault is reported with its path and what was expected."""

import pytest

from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.steps.validate import Validate
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio


async def test_faults_have_path_and_expectation() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    tool = a_tool("far:add", input_schema=schema)
    with pytest.raises(Refused) as refused:
        await Validate().fit(tool)(a_call(tool, arguments={"a": "x", "b": 1}), echo)
    found = refused.value.problem
    faults = found.details["faults"]
    assert [(fault["path"], fault["expected"]) for fault in faults] == [
        ("arguments.a", "an integer"),
        ("arguments.b", "a string"),
    ]
    assert found.path == "arguments.a"
    assert found.code == "INVALID_ARGUMENTS"
    assert matches("errors", "two invalid arguments", found.message)
