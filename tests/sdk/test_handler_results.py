"""Handler results become results or name the broken rule; raised errors stay private."""

import errno
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

from toolcrib import hints
from toolcrib.errors import Broken, BusinessRuleError, Failed, Refused, ToolcribError
from toolcrib.model import Hints, Result, Voice
from toolcrib.sdk import ToolResult
from toolcrib.sdk.handler_results import (
    MAX_FOLLOW_UPS,
    MAX_MESSAGE_CHARS,
    error_violation,
    handler_error,
    result_of,
)
from toolcrib.testing import a_tool

pytestmark = pytest.mark.requirement("E6", "E10")

READS = a_tool(category="query")
SPELLED = hints.found([1, 2]).as_json()


async def promise() -> int:
    return 1


async def yields_later() -> AsyncGenerator[int]:
    yield 1


def yields() -> Generator[int]:
    yield 1


def anything(**fields: Any) -> ToolResult[Any]:
    given: dict[str, Any] = {"data": 1, **fields}
    return ToolResult(**given)


def test_all_tool_result_fields_are_kept() -> None:
    given = hints.found([1, 2])
    told = anything(data=(1, 2), message="Here.", hints=given, suppress_voice=True, follow_ups=["More?"])
    assert result_of(told) == Result(
        data=[1, 2], message="Here.", hints=given, voice=Voice(suppress=True, follow_ups=("More?",))
    )


def test_hints_may_use_wire_names() -> None:
    result = result_of(anything(hints=SPELLED))
    assert isinstance(result.hints, Hints)
    assert result.hints.as_json() == SPELLED


def test_a_ready_result_passes() -> None:
    ready = Result(content=({"type": "text", "text": "hi"},))
    assert result_of(ready) is ready


@pytest.mark.parametrize(
    "make, rule",
    [
        (promise, "await it"),
        (yields, "list of what it yields"),
        (yields_later, "list of what it yields"),
        (lambda: anything(data=promise()), "await it"),
        (lambda: anything(data=yields()), "list of what it yields"),
        (lambda: anything(data=anything()), "itself a ToolResult"),
        (lambda: anything(data=object()), "not JSON"),
        (lambda: anything(message=None), "message"),
        (lambda: anything(message=5), "message"),
        (lambda: anything(message="\ud800"), "message"),
        (lambda: anything(message="x" * (MAX_MESSAGE_CHARS + 1)), "message"),
        (lambda: anything(hints="none"), "hints must be built"),
        (lambda: anything(hints={"confidence": 1.7}), "agentHints.confidence"),
        (lambda: anything(hints={"surprise": 1}), "surprise"),
        (lambda: anything(suppress_voice="no"), "suppress_voice"),
        (lambda: anything(follow_ups="More?"), "follow_ups"),
        (lambda: anything(follow_ups=(1,)), "follow_ups"),
        (lambda: anything(follow_ups=("More?",) * (MAX_FOLLOW_UPS + 1)), "follow_ups"),
    ],
)
def test_business_rule_error_keeps_its_code(make: Callable[[], object], rule: str) -> None:
    with pytest.raises(Broken, match=rule) as broken:
        result_of(make())
    assert broken.value.problem.code == "CONTRACT_VIOLATION"


def test_the_longest_text_and_the_most_follow_ups_are_fine() -> None:
    result_of(anything(message="x" * MAX_MESSAGE_CHARS, follow_ups=("More?",) * MAX_FOLLOW_UPS))


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def long_chain(length: int) -> Exception:
    error: Exception = ConnectionError()
    for _ in range(length):
        error = caused(ValueError(), error)
    return error


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "error, may_pass",
    [
        (ConnectionRefusedError(), True),
        (BrokenPipeError(), True),
        (TimeoutError(), True),
        (OSError(errno.EHOSTUNREACH, "no route"), True),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), True),
        (caused(RuntimeError("client library"), ConnectionResetError()), True),
        (ExceptionGroup("both", [ConnectionError(), TimeoutError()]), True),
        (long_chain(7), True),
        (long_chain(8), False),
        (ExceptionGroup("one", [ConnectionError(), ValueError()]), False),
        (socket.gaierror(socket.EAI_NONAME, "no such name"), False),
        (FileNotFoundError(errno.ENOENT, "no file"), False),
        (PermissionError(errno.EACCES, "not yours"), False),
        (OSError("of no number"), False),
        (ValueError(), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_connection_errors_are_retryable(error: BaseException, may_pass: bool) -> None:
    told = handler_error(error, READS)
    assert (told.problem.code, told.problem.retryable) == ("HANDLER_ERROR", may_pass)


class Bare(ToolcribError):
    """An error whose author forgot to make it one of ours."""

    def __init__(self) -> None:
        pass


def with_hints(given: object) -> BusinessRuleError:
    return BusinessRuleError("FULL", "the deck is full", hints=given)  # pyright: ignore[reportArgumentType]


@pytest.mark.requirement("E11")
@pytest.mark.parametrize(
    "error, rule",
    [
        (BusinessRuleError("FULL", None), "an error must have"),  # pyright: ignore[reportArgumentType]
        (BusinessRuleError(5, "no"), "an error must have"),  # pyright: ignore[reportArgumentType]
        (BusinessRuleError("FULL", "\ud800"), "an error must have"),
        (BusinessRuleError("FULL", "x" * (MAX_MESSAGE_CHARS + 1)), "an error must have"),
        (Failed("TOOL_FAILED", "no", details={"at": object()}), "an error must have"),
        (Bare(), "an error must have"),
        (with_hints("none"), "hints must be built"),
        (with_hints({"confidence": 1.7}), "agentHints.confidence"),
    ],
)
def test_unserializable_error_breaks_the_contract(error: ToolcribError, rule: str) -> None:
    broken = error_violation(error)
    assert broken is not None
    assert rule in broken.problem.message


@pytest.mark.requirement("E11")
@pytest.mark.parametrize(
    "error",
    [
        BusinessRuleError("FULL", "the deck is full"),
        with_hints(hints.failed("the deck is full")),
        Refused("INVALID_ARGUMENTS", "no", path="arguments.x", details={"faults": []}),
    ],
)
def test_an_error_of_ours_is_fit(error: ToolcribError) -> None:
    assert error_violation(error) is None


@pytest.mark.requirement("E11")
def test_error_hints_may_use_wire_names() -> None:
    error = with_hints(SPELLED)
    assert error_violation(error) is None
    assert isinstance(error.hints, Hints)
