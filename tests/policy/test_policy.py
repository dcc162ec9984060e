"""Policy rules and their combination: visibility and permissions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Deprecation, Tool, permits
from toolcrib.policy import Context, Contexts, DisabledRule, PermissionsRule, Policy, RemovedRule
from toolcrib.testing import a_caller, a_tool


@pytest.mark.requirement("F4")
def test_absent_list_shows_all_and_empty_list_none() -> None:
    contexts = Contexts({"open": Context(), "shut": Context(tools=())})
    tool = a_tool()
    assert contexts.why_not(tool, a_caller(context="open")) is None
    assert contexts.why_not(tool, a_caller(context="shut")) is not None
    assert contexts.why_not(tool, a_caller(context="default")) is None


@pytest.mark.requirement("F4")
@pytest.mark.parametrize(
    "entry, chosen",
    [
        ("*", True),
        ("crm:find-card", True),
        ("find_card", True),
        ("crm:*", True),
        ("crm:find-*", True),
        ("find_*", True),
        ("tag:cards", True),
        ("category:query", True),
        ("old_find", True),
        ("crm:find_card", True),
        ("Find-Card", True),
        ("tag:car", False),
        ("category:mutation", False),
        ("card", False),
        ("crm", False),
        ("other:*", False),
    ],
)
def test_entries_match_name_glob_tag_category_alias(entry: str, chosen: bool) -> None:
    tool = a_tool("crm:find-card", tags=("cards",), category="query", aliases=("old_find",))
    assert Context(tools=(entry,)).selects(tool) is chosen


@pytest.mark.requirement("F4")
def test_an_unknown_context_shows_nothing() -> None:
    reason = Contexts({}).why_not(a_tool(), a_caller(context="nowhere"))
    assert reason is not None
    assert reason.effect == "hide"


@pytest.mark.requirement("F4")
def test_entries_that_match_nothing_are_reported() -> None:
    contexts = Contexts({"a": Context(tools=("fake:echo", "fake:gone", "*"), pinned=("tag:none", "fake:*"))})
    tool = a_tool()
    assert contexts.idle_entries({tool.name: tool}) == (("a.tools", "fake:gone"), ("a.pinned", "tag:none"))


def test_a_missing_permission_is_denied_by_name() -> None:
    tool = a_tool(permissions=frozenset({"cards:read", "cards:write"}))
    reason = PermissionsRule().why_not(tool, a_caller(permissions=frozenset({"cards:read"})))
    assert reason is not None
    assert (reason.effect, reason.code) == ("deny", "PERMISSION_DENIED")
    assert "cards:write" in reason.message
    assert "cards:read" not in reason.message


@pytest.mark.parametrize("held", [{"cards:read"}, {"cards:*"}, {"*"}])
def test_permissions_match_exactly_or_by_wildcard(held: set[str]) -> None:
    tool = a_tool(permissions=frozenset({"cards:read"}))
    assert PermissionsRule().why_not(tool, a_caller(permissions=frozenset(held))) is None


@pytest.mark.parametrize("held", [{"cards"}, {"card:*"}, {"cards:rea"}, set[str]()])
def test_other_permissions_do_not_match(held: set[str]) -> None:
    tool = a_tool(permissions=frozenset({"cards:read"}))
    assert PermissionsRule().why_not(tool, a_caller(permissions=frozenset(held))) is not None


@pytest.mark.parametrize("off", ["fake:echo", "fake"])
def test_user_disables_a_tool_or_a_source(off: str) -> None:
    assert DisabledRule().why_not(a_tool(), a_caller(disabled=frozenset({off}))) is not None
    assert DisabledRule().why_not(a_tool("other:echo"), a_caller(disabled=frozenset({off}))) is None


@pytest.mark.requirement("I7")
def test_operator_disables_a_tool_for_everyone() -> None:
    reason = DisabledRule().why_not(a_tool(hidden=True), a_caller(permissions=frozenset({"*"})))
    assert reason is not None
    assert reason.effect == "hide"


@pytest.mark.requirement("A6", "E13")
def test_deprecated_tool_is_visible_until_removal() -> None:
    gone = Deprecation(since="1.0.0", replacement="fake:better", removal_date="2030-01-01")
    tool = a_tool(deprecated=gone)
    assert RemovedRule(today=lambda: "2029-12-31").why_not(tool, a_caller()) is None
    reason = RemovedRule(today=lambda: "2030-01-01").why_not(tool, a_caller())
    assert reason is not None
    assert reason.code == "TOOL_REMOVED"
    assert "fake:better" in reason.message


def test_hiding_rules_come_before_denying_rules() -> None:
    tool = a_tool(permissions=frozenset({"a:b"}), hidden=True)
    reason = Policy([PermissionsRule(), DisabledRule()]).why_not(tool, a_caller())
    assert reason is not None
    assert reason.rule == "disabled"


@given(
    st.frozensets(st.sampled_from(["a:b", "a:c", "d:e", "a:*", "*"])),
    st.frozensets(st.sampled_from(["a:b", "a:c", "d:e"])),
    st.sampled_from(["default", "narrow", "shut"]),
    st.booleans(),
)
@pytest.mark.check(3)
def test_policy_agrees_with_the_reference_model(
    held: frozenset[str], needed: frozenset[str], context: str, hidden: bool
) -> None:
    policy = Policy(
        [
            Contexts({"narrow": Context(tools=("fake:*",)), "shut": Context(tools=())}),
            DisabledRule(),
            PermissionsRule(),
        ]
    )
    tool = a_tool(permissions=needed, hidden=hidden)
    caller = a_caller(permissions=held, context=context)
    granted = all("*" in held or each in held or each.split(":")[0] + ":*" in held for each in needed)
    assert policy.visible(tool, caller) is (granted and not hidden and context != "shut")


@given(st.sampled_from(["default", "narrow"]), st.frozensets(st.sampled_from(["a:b", "fake"])))
def test_callers_of_one_audience_see_equal_lists(context: str, some: frozenset[str]) -> None:
    policy = Policy(
        [Contexts({"narrow": Context(tools=("x",))}), DisabledRule(), PermissionsRule(), RemovedRule()]
    )
    one = a_caller(id="1", context=context, permissions=some, disabled=some)
    two = a_caller(id="2", context=context, permissions=some, disabled=some)
    assert policy.audience(one) == policy.audience(two)
    assert hash(policy.audience(one)) == hash(policy.audience(two))


def test_admin_has_gateway_permissions_only() -> None:
    assert permits({"crib:admin"}, "crib:servers")
    assert not permits({"crib:admin"}, "cards:read")
    assert not permits({"cards:admin"}, "cards:read")
    assert not permits({"*:*"}, "*")


class Watching:
    """A rule that counts how often it is asked about each tool."""

    name = "watching"

    def __init__(self) -> None:
        self.chosen: list[str] = []
        self.asked: list[str] = []

    def concerns(self, tool: Tool) -> bool:
        self.chosen.append(tool.version)
        return tool.version != "1.0.0"

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        assert caller
        self.asked.append(tool.version)
        return Reason(self.name, "is watched")

    def audience(self, caller: Caller) -> None:
        assert caller


def test_rules_are_chosen_once_per_definition() -> None:
    rule = Watching()
    policy, tool, caller = Policy([rule]), a_tool("s:t"), a_caller()
    changed = replace(tool, version="2.0.0")
    assert [policy.visible(tool, caller) for _ in range(3)] == [True] * 3
    assert [policy.visible(changed, caller) for _ in range(3)] == [False] * 3
    assert (rule.chosen, rule.asked) == (["1.0.0", "2.0.0"], ["2.0.0"] * 3)
    assert policy.visible(tool, caller)
