"""The rule that app tools are visible only to users who installed the app."""

import pytest

from tests.texts import matches
from toolcrib.policy import InstalledRule
from toolcrib.testing import a_caller, a_tool

RULE = InstalledRule()
TOOL = a_tool("com.example.reminder:add_reminder", source="com.example.reminder", family="app")


@pytest.mark.requirement("D3", "D5")
def test_app_tools_are_visible_to_users_with_the_app() -> None:
    has = a_caller(user="ada", session="s1", apps=frozenset({"com.example.reminder"}))
    has_another = a_caller(user="ada", session="s1", apps=frozenset({"com.example"}))
    assert RULE.why_not(TOOL, has) is None
    reason = RULE.why_not(TOOL, has_another)
    assert reason is not None
    assert reason.effect == "hide"
    assert matches("errors", "tool of an app that is not installed", reason.message)


@pytest.mark.requirement("D3")
def test_key_without_user_sees_no_app_tools() -> None:
    nobody, away = RULE.why_not(TOOL, a_caller()), RULE.why_not(TOOL, a_caller(user="ada"))
    assert nobody is not None
    assert away is not None
    assert "acts for no user" in nobody.message
    assert "no active session" in away.message


@pytest.mark.requirement("D3")
def test_other_sources_are_not_affected() -> None:
    assert RULE.why_not(a_tool("crm:find-card"), a_caller()) is None


def test_callers_with_equal_apps_share_an_audience() -> None:
    one, two = a_caller(user="ada", apps=frozenset({"a", "b"})), a_caller(apps=frozenset({"b", "a"}))
    assert RULE.audience(one) == RULE.audience(two)
    assert RULE.audience(one) != RULE.audience(a_caller())
