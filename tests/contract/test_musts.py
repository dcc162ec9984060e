"""Every rule of the tool contract has a test or a review question."""

import ast
from functools import cache
from typing import Any

import pytest

from tests.contract.must import Must
from tests.contract.musts import MUSTS
from tests.gates.ledger import OPEN_FILE, open_ids
from tests.gates.tree import ROOT
from tests.requirements import LEDGER
from toolcrib.model import Tool
from toolcrib.sdk.checklist import ITEMS, judge
from toolcrib.sdk.evidence import ToolEvidence
from toolcrib.testing import a_tool

OPEN = set(open_ids((ROOT / OPEN_FILE).read_text()))
CONTRACT = {*(one for one in LEDGER if one.startswith("E")), "B1", "B4"} - OPEN
WORD: dict[str, Any] = {"word": {"type": "string", "description": "Any word."}}
LEFT_OPEN: tuple[Tool, ...] = (
    a_tool("cards:change-card", description="Change a card. Use it when a card is wrong; returns the card."),
    a_tool(
        "cards:find-word",
        description="Find a word in all the cards. Use it when someone asks; returns the cards.",
        category="query",
        idempotent=True,
        cache_ttl=60.0,
        input_schema={"type": "object", "properties": WORD},
    ),
)
"""Tools whose quality only a person can review."""


@cache
def _marks(file: str) -> dict[str, set[str]]:
    """The requirement ids per test of a file, including marks of the module."""
    tree = ast.parse((ROOT / file).read_text())
    whole: set[str] = set()
    own: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and "pytestmark" in {
            getattr(each, "id", "") for each in node.targets
        }:
            whole |= _ids(node.value)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own[node.name] = set().union(*map(_ids, node.decorator_list))
    return {name: ids | whole for name, ids in own.items()}


def _ids(node: ast.expr) -> set[str]:
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    named = [
        each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr == "requirement"
    ]
    values = [
        argument.value for each in named for argument in each.args if isinstance(argument, ast.Constant)
    ]
    return {value for value in values if isinstance(value, str)}


@cache
def _asked() -> frozenset[str]:
    """Checklist items that need a human review for some tool."""
    judged = [judge(tool, ToolEvidence()) for tool in LEFT_OPEN]
    return frozenset(name for each in judged for name, found in each.items() if found.verdict == "person")


def faults(entry: Must) -> list[str]:
    """The gaps in the proof of an entry."""
    found = [] if entry.proofs else [f"{entry.key}: nothing proves it"]
    found += [f"{entry.key}: {one} is not in the ledger" for one in entry.ids if one not in LEDGER]
    for test in entry.tests:
        file, _, name = test.partition("::")
        marks = _marks(file).get(name) if (ROOT / file).is_file() else None
        if marks is None or not name.startswith("test_"):
            found.append(f"{entry.key}: there is no test {test}")
        elif marks.isdisjoint(entry.ids):
            found.append(f"{entry.key}: {test} is marked with none of {', '.join(entry.ids)}")
    found += [
        f"{entry.key}: nobody is asked about {item}" for item in entry.questions if item not in _asked()
    ]
    return found


def test_every_must_has_a_test_or_a_review_question() -> None:
    found = [fault for entry in MUSTS for fault in faults(entry)]
    assert not found, "\n".join(found)


def test_musts_are_unique_sentences() -> None:
    assert len({entry.key for entry in MUSTS}) == len(MUSTS) > 100
    for entry in MUSTS:
        assert entry.holds.endswith(".")
        assert len(entry.holds.split()) >= 5, entry.key


def test_every_contract_id_has_marked_tests() -> None:
    proved = {
        one
        for entry in MUSTS
        for test in entry.tests
        for one in _marks(test.partition("::")[0])[test.partition("::")[2]] & set(entry.ids)
    }
    assert CONTRACT - proved == set()


@pytest.mark.requirement("E15")
def test_the_checklist_has_every_item() -> None:
    assert [item.id for item in ITEMS] == [
        *("name", "description", "parameters", "permissions", "category", "response-time"),
        *("cacheable", "cache-ttl", "idempotent", "examples", "tags"),
        *("result", "hints", "confidence", "source-quality", "validity", "context-needed", "assumptions"),
        *("risks", "dependencies", "impact", "preferences", "reasoning"),
        *("metadata", "errors", "logging", "metrics", "tests", "registered"),
    ]
