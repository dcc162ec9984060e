"""What goes into a function arrives, what comes out is JSON, and whatever it raises the gateway goes on."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tests.sdk.test_signature import JSON
from tests.sources.calling import run
from tests.texts import matches
from toolcrib.errors import Broken, BusinessRuleError, Failed, Refused, Unavailable
from toolcrib.model import Hints, Progress, Result, Voice
from toolcrib.sdk import Options, Registry, ToolContext, ToolResult, create_tool
from toolcrib.testing import a_caller


@pytest.mark.requirement("B1", "E5")
async def test_arguments_and_context_arrive() -> None:
    @create_tool
    async def show(text: str, ctx: ToolContext, count: int = 2) -> dict[str, Any]:
        return {"text": text, "count": count, "user": ctx.user_id}

    @create_tool
    def show_sync(who: ToolContext, text: str) -> dict[str, Any]:
        return {"text": text, "user": who.user_id}

    caller = a_caller(user="u1")
    assert (await run(show, {"text": "hi"}, caller=caller)).data == {"text": "hi", "count": 2, "user": "u1"}
    assert (await run(show_sync, {"text": "hi"}, caller=caller)).data == {"text": "hi", "user": "u1"}


class Params(BaseModel):
    numbers: list[int] = Field(min_length=1)


@pytest.mark.requirement("E5")
async def test_a_handler_of_params_and_context_gets_both() -> None:
    @create_tool
    async def add(params: Params, context: ToolContext) -> ToolResult[int]:
        return ToolResult(data=sum(params.numbers), message=f"for {context.agent_id}")

    result = await run(add, {"numbers": [1, 2]})
    assert (result.data, result.message) == (3, "for unknown")


@pytest.mark.requirement("B1")
@given(arguments=st.dictionaries(st.text(), JSON, max_size=4))
async def test_an_executor_gets_its_arguments_intact(arguments: dict[str, Any]) -> None:
    async def echo(given: dict[str, Any], ctx: ToolContext) -> dict[str, Any]:
        return {"given": given, "agent": ctx.agent_id}

    made = Registry().register_tool({"name": "echo"}, echo)
    result = await run(made, arguments)
    assert result.data == {"given": arguments, "agent": "unknown"}


async def test_any_name_of_a_parameter_is_safe() -> None:
    @create_tool
    def act(self_: int, function: int, call: int, arguments: int) -> list[int]:
        return [self_, function, call, arguments]

    assert (await run(act, {"self_": 1, "function": 2, "call": 3, "arguments": 4})).data == [1, 2, 3, 4]


async def test_progress_is_passed_on_from_either_kind() -> None:
    heard: list[Progress] = []

    async def report(progress: Progress) -> None:
        heard.append(progress)

    @create_tool
    async def slowly(ctx: ToolContext) -> None:
        await ctx.report(1, 2, "half")

    @create_tool
    def slowly_sync(ctx: ToolContext) -> None:
        ctx.report_sync(2, 2, "done")

    await run(slowly, report=report)
    await run(slowly_sync, report=report)
    assert heard == [Progress(done=1, total=2, message="half"), Progress(done=2, total=2, message="done")]


# --- what comes out ---


@dataclass
class Point:
    x: int
    when: datetime


class Card(BaseModel):
    key: UUID
    price: Decimal
    front_side: str = Field(serialization_alias="frontSide")


POINT = Point(1, datetime(2026, 3, 3, tzinfo=UTC))
CARD = Card(key=UUID(int=1), price=Decimal("9.90"), front_side="a")


@pytest.mark.parametrize(
    "value,data",
    [
        ("text", "text"),
        (7, 7),
        (1.5, 1.5),
        (True, True),
        (None, None),
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        ((1, 2), [1, 2]),
        ({3}, [3]),
        ({1: "one"}, {"1": "one"}),
        (POINT, {"x": 1, "when": "2026-03-03T00:00:00Z"}),
        (CARD, {"key": str(UUID(int=1)), "price": "9.90", "frontSide": "a"}),
        ([CARD], [{"key": str(UUID(int=1)), "price": "9.90", "frontSide": "a"}]),
        (b"\xff\x00", "_wA="),
        (float("nan"), None),
        ({"x": float("inf")}, {"x": None}),
    ],
)
async def test_return_value_is_converted_to_json(value: Any, data: Any) -> None:
    @create_tool
    async def give() -> Any:
        return value

    assert await run(give) == Result(data=data)


@given(value=JSON)
async def test_json_passes_unchanged(value: Any) -> None:
    @create_tool
    async def give() -> Any:
        return value

    assert (await run(give)).data == value


async def test_result_is_a_copy_of_the_returned_object() -> None:
    kept: dict[str, list[int]] = {"numbers": [1]}

    @create_tool
    async def give() -> Any:
        return kept

    result = await run(give)
    kept["numbers"].append(2)
    assert result.data == {"numbers": [1]}


async def test_tool_result_carries_hints_and_metadata() -> None:
    hints = Hints(confidence=0.9)

    @create_tool
    async def give() -> ToolResult[Point]:
        return ToolResult(
            data=POINT, message="Here.", hints=hints, suppress_voice=True, follow_ups=("More?",)
        )

    assert await run(give) == Result(
        data={"x": 1, "when": "2026-03-03T00:00:00Z"},
        message="Here.",
        hints=hints,
        voice=Voice(suppress=True, follow_ups=("More?",)),
    )


def loop() -> Any:
    turning: list[Any] = []
    turning.append(turning)
    return turning


@pytest.mark.parametrize("value", [object(), {"x": object()}, loop(), lambda: 1])
async def test_non_json_result_breaks_the_contract(value: Any) -> None:
    @create_tool
    async def give() -> Any:
        return value

    with pytest.raises(Broken) as caught:
        await run(give)
    assert matches("sources", "non json result breaks the contract", str(caught.value))
    assert caught.value.problem.code == "CONTRACT_VIOLATION"


# --- what goes wrong ---


@pytest.mark.requirement("E11")
@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("password=hunter2"),
        KeyError("x"),
        StopIteration(),
        SystemExit(1),
        KeyboardInterrupt(),
        BaseException("hunter2"),
        ExceptionGroup("several", [ValueError("hunter2")]),
        TimeoutError(),
        RecursionError(),
    ],
)
async def test_raising_handler_is_handler_error_without_its_text(kind: str, error: BaseException) -> None:
    async def fail() -> None:
        raise error

    def fail_sync() -> None:
        raise error

    with pytest.raises(Failed) as caught:
        await run(create_tool(fail) if kind == "async" else create_tool(fail_sync))
    problem = caught.value.problem
    assert (problem.code, problem.retryable) == ("HANDLER_ERROR", False)
    assert matches("sources", "raising handler is handler error without its text", problem.message)
    assert caught.value.__cause__ is not None


@pytest.mark.requirement("E11")
async def test_stop_iteration_from_handler_is_contained() -> None:
    @create_tool
    def fail() -> None:
        raise GeneratorExit

    with pytest.raises(Failed) as caught:
        await run(fail)
    assert caught.value.problem.code == "HANDLER_ERROR"


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "options, is_retryable",
    [
        ({"category": "query"}, True),
        ({"category": "analysis"}, True),
        ({"idempotent": True}, True),
        ({}, False),
        ({"category": "generation"}, False),
        ({"category": "generation", "idempotent": True}, False),
    ],
)
async def test_transient_error_is_retryable_for_idempotent_tools(
    options: Options, is_retryable: bool
) -> None:
    @create_tool(**options)
    async def fetch() -> None:
        raise ConnectionResetError("10.0.0.7")

    with pytest.raises(Failed) as caught:
        await run(fetch)
    problem = caught.value.problem
    assert (problem.code, problem.retryable) == ("HANDLER_ERROR", is_retryable)
    assert "10.0.0.7" not in problem.message
    assert isinstance(caught.value.__cause__, ConnectionResetError)


@pytest.mark.requirement("E11")
@pytest.mark.parametrize(
    "error",
    [
        BusinessRuleError("DECK_FULL", "the deck is full"),
        Refused("PERMISSION_DENIED", "not you"),
        Unavailable("NETWORK_ERROR", "no way there"),
    ],
)
async def test_errors_of_our_own_pass_as_they_are(error: Exception) -> None:
    @create_tool
    async def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await run(fail)
    assert caught.value is error


@pytest.mark.requirement("E11")
async def test_type_error_is_invalid_argument_function_error_is_not() -> None:
    @create_tool
    async def parse(when: datetime) -> None:
        Params(numbers=[])

    with pytest.raises(Refused) as caught:
        await run(parse, {"when": "yesterday"})
    assert (caught.value.problem.code, caught.value.problem.path) == ("INVALID_ARGUMENTS", "arguments.when")
    with pytest.raises(Failed) as failed:
        await run(parse, {"when": "2026-03-03T00:00:00Z"})
    assert failed.value.problem.code == "HANDLER_ERROR"


async def test_a_function_that_awaits_a_cancelled_task_has_failed() -> None:
    @create_tool
    async def stumble() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    with pytest.raises(Failed) as caught:
        await run(stumble)
    assert caught.value.problem.code == "HANDLER_ERROR"


async def test_cancellation_reaches_the_function_and_comes_back_out() -> None:
    seen: list[str] = []

    @create_tool
    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("cancelled")

    with anyio.move_on_after(0.01) as scope:
        await run(wait)
    assert scope.cancelled_caught
    assert seen == ["cancelled"]
