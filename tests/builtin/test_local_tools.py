"""The ready-made tools are well defined, and their source lets go of what they hold."""

import pytest

from toolcrib.builtin import SearchSettings, local_tools
from toolcrib.schemas import compile_schema
from toolcrib.sdk import Registry
from toolcrib.sources.functions import Functions
from toolcrib.testing import a_call

TOOLS = local_tools().tools


@pytest.mark.requirement("F6")
def test_there_are_three_and_nothing_falls_short() -> None:
    assert [each.name for each in TOOLS] == ["get-datetime", "control-volume", "search-web"]
    assert [finding for each in TOOLS for finding in Registry().validate(each)] == []


async def test_answers_keep_to_their_output_schema() -> None:
    clock = TOOLS[0].bind("local")
    assert clock.output_schema is not None
    result = await Functions("local", TOOLS).call(a_call(clock))
    assert compile_schema(clock.output_schema).faults(result.data) == ()


async def test_closing_before_anything_was_searched_is_fine() -> None:
    await local_tools(SearchSettings("http://127.0.0.1:9")).aclose()
