"""The rule for tools that are no longer what was trusted."""

import pytest

from toolcrib.policy import PermissionsRule, PinnedRule, Policy
from toolcrib.testing import a_caller, a_tool


@pytest.mark.requirement("I5")
def test_a_strictly_pinned_tool_that_has_changed_is_hidden_from_everyone() -> None:
    reason = PinnedRule().why_not(a_tool(changed="strict"), a_caller(permissions=frozenset({"*"})))
    assert reason is not None
    assert (reason.rule, reason.effect) == ("pinned", "hide")
    assert "toolcrib pins approve" in reason.message


@pytest.mark.parametrize("changed", ["", "notify"])
def test_any_other_is_there(changed: str) -> None:
    assert PinnedRule().why_not(a_tool(changed=changed), a_caller()) is None


def test_a_changed_tool_is_hidden_before_a_permission_is_asked_for() -> None:
    tool = a_tool(changed="strict", permissions=frozenset({"a:b"}))
    reason = Policy([PermissionsRule(), PinnedRule()]).why_not(tool, a_caller())
    assert reason is not None
    assert reason.rule == "pinned"


def test_callers_make_no_difference() -> None:
    assert PinnedRule().audience(a_caller(id="1")) == PinnedRule().audience(a_caller(id="2", context="other"))
