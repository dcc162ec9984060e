"""Which tools count as declared mutations: those of an author or the operator, never an assumption."""

from typing import Any

import pytest

from toolcrib.catalog.entries import ToolOverride
from toolcrib.model import fingerprint
from toolcrib.sdk import create_tool
from toolcrib.testing import a_tool

pytestmark = pytest.mark.requirement("E14")


@pytest.mark.parametrize(
    "options, declared",
    [({"category": "mutation"}, True), ({"category": "query"}, False), ({}, False)],
)
def test_author_declares_with_the_category(options: dict[str, Any], declared: bool) -> None:
    def pay() -> int:
        """Pay."""
        return 1

    made = create_tool(pay, **options).definition
    assert (made.declared_mutation, made.category) == (declared, options.get("category", "mutation"))


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("category, declared", [("mutation", True), ("query", False), (None, None)])
def test_operator_overrides_the_author(before: bool, category: Any, declared: bool | None) -> None:
    changed = ToolOverride(category=category, title="t").apply(a_tool(declared_mutation=before))
    assert changed.declared_mutation is (before if declared is None else declared)


def test_annotations_of_a_server_declare_nothing() -> None:
    found = a_tool(family="mcp", annotations={"destructiveHint": True, "readOnlyHint": False})
    assert not found.declared_mutation


def test_a_declaration_is_no_part_of_the_fingerprint() -> None:
    assert fingerprint(a_tool()) == fingerprint(a_tool(declared_mutation=True))
