"""The one table of codes: total, consistent, and fit to be spoken."""

import re

import pytest

from toolcrib.errors import CODES, BusinessRuleError, Refused, ToolcribError, problem, problem_json
from toolcrib.model import Kind

TABLE = {
    "INVALID_REQUEST": ("invalid", 400, "validation", False),
    "INVALID_TOOL_NAME": ("invalid", 400, "validation", False),
    "INVALID_ARGUMENTS": ("invalid", 400, "validation", False),
    "METHOD_NOT_ALLOWED": ("invalid", 405, "validation", False),
    "ALREADY_EXISTS": ("invalid", 409, "validation", False),
    "PAYLOAD_TOO_LARGE": ("invalid", 413, "validation", False),
    "IDEMPOTENCY_MISMATCH": ("invalid", 422, "validation", False),
    "NOT_FOUND": ("not_found", 404, "validation", False),
    "TOOL_NOT_FOUND": ("not_found", 404, "validation", False),
    "TOOL_REMOVED": ("not_found", 410, "validation", False),
    "UNAUTHENTICATED": ("denied", 401, "validation", False),
    "NO_SESSION": ("denied", 401, "validation", False),
    "PERMISSION_DENIED": ("denied", 403, "business", False),
    "SCOPE_DENIED": ("denied", 403, "business", False),
    "ORIGIN_REFUSED": ("denied", 403, "validation", False),
    "HOST_REFUSED": ("denied", 421, "validation", False),
    "RATE_LIMITED": ("limited", 429, "business", True),
    "IN_PROGRESS": ("limited", 409, "business", True),
    "OVERLOADED": ("limited", 503, "system", True),
    "APP_NOT_AVAILABLE": ("unavailable", 503, "system", True),
    "SOURCE_DOWN": ("unavailable", 503, "system", True),
    "NETWORK_ERROR": ("unavailable", 502, "system", True),
    "HTTP_ERROR": ("unavailable", 502, "system", True),
    "TIMEOUT": ("timeout", 504, "system", True),
    "OUTCOME_UNKNOWN": ("unknown", 504, "system", False),
    "TOOL_FAILED": ("failed", 422, "business", False),
    "HANDLER_ERROR": ("failed", 500, "system", False),
    "ANSWER_NOT_KEPT": ("bad_result", 410, "business", False),
    "RESULT_TOO_LARGE": ("bad_result", 502, "system", False),
    "CONTRACT_VIOLATION": ("bad_result", 500, "system", False),
    "CANCELLED": ("cancelled", 499, "system", False),
    "EXECUTION_ERROR": ("internal", 500, "system", False),
}


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("code", sorted(TABLE))
def test_each_code_has_its_kind_status_class_and_retryability(code: str) -> None:
    row = CODES[code]
    assert (str(row.kind), row.status, row.error_class, row.retryable) == TABLE[code]


@pytest.mark.requirement("D5")
def test_the_table_and_the_kinds_are_total() -> None:
    assert set(CODES) == set(TABLE)
    assert {row.kind for row in CODES.values()} == set(Kind)


@pytest.mark.requirement("G1")
def test_every_sentence_can_be_spoken() -> None:
    for code, row in CODES.items():
        assert re.fullmatch(r"[A-Z][A-Za-z ,']+\.( [A-Z][a-z A-Z]+\.)?", row.speak), code


def test_problem_defaults_come_from_the_table() -> None:
    assert problem("TIMEOUT", "late").retryable
    assert not problem("TIMEOUT", "late", retryable=False).retryable
    assert problem_json(problem("RATE_LIMITED", "slow down", retry_after=2.0)) == {
        "code": "RATE_LIMITED",
        "kind": "limited",
        "class": "business",
        "message": "slow down",
        "retryable": True,
        "retryAfter": 2.0,
    }


def test_an_unknown_code_cannot_be_raised() -> None:
    with pytest.raises(KeyError):
        Refused("NO_SUCH_CODE", "…")


def test_a_business_rule_keeps_the_tools_own_code() -> None:
    error = BusinessRuleError("CARD_LOCKED", "This card is locked.")
    assert isinstance(error, ToolcribError)
    assert error.problem.code == "TOOL_FAILED"
    assert error.problem.tool_code == "CARD_LOCKED"
