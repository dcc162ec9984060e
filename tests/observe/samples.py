"""Entries and results as the tests of this folder need them."""

from typing import Any

from toolcrib.errors import problem
from toolcrib.model import Call, Problem, Result
from toolcrib.observe import CallEntry
from toolcrib.testing import a_call

NOON = 1_780_000_000.25
"""2026-05-28 20:26:40.25 UTC."""


def a_problem(code: str = "TOOL_FAILED") -> Problem:
    return problem(code, "it went wrong")


def a_failure(code: str = "TOOL_FAILED") -> Result:
    return Result(problem=a_problem(code))


def an_entry(call: Call | None = None, **fields: Any) -> CallEntry:
    call = call or a_call()
    plain: dict[str, Any] = {
        "id": call.id,
        "tool": call.tool,
        "caller": call.caller,
        "origin": call.origin,
        "problem": None,
        "cached": False,
        "seconds": 0.004,
        "at": NOON,
    }
    return CallEntry(**(plain | fields))
