"""The rule for tools that are no longer what was trusted."""

import pytest

from toolcrib.policy import PermissionsRule, PinnedRule, Policy
from toolcrib.testing import a_caller, a_tool


@pytest.mark.requirement("I5")
def test_changed_strict_tool_is_hidden() -> None:
    reason = PinnedRule().why_not(a_tool(changed="strict"), a_caller(permissions=frozenset({"*"})))
    assert reason is not None
    assert (reason.rule, reason.effect) == ("pinned", "hide")
    assert "toolcrib pins approve" in reason.message


@pytest.mark.parametrize("changed", ["", "notify"])
def test_other_tools_are_visible(changed: str) -> None:
    assert PinnedRule().why_not(a_tool(changed=changed), a_caller()) is None


def test_pinning_is_checked_before_permissions() -> None:
    tool = a_tool(changed="strict", permissions=frozenset({"a:b"}))
    reason = Policy([PermissionsRule(), PinnedRule()]).why_not(tool, a_caller())
    assert reason is not None
    assert reason.rule == "pinned"


def test_pinning_is_the_same_for_every_caller() -> None:
    assert PinnedRule().audience(a_caller(id="1")) == PinnedRule().audience(a_caller(id="2", context="other"))
