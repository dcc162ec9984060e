"""Every promise of the page on security names tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "security.md"
HEADING = "## What is promised, and the tests that prove it"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_SEPARATOR = re.compile(r"[|\s-]+")


@cache
def _functions(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _rows(text: str) -> list[str]:
    """Return the rows of the tables below the heading, without their heads."""
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    lines = section.splitlines()
    tables = [line for line in lines if line.startswith("|") and not _SEPARATOR.fullmatch(line)]
    return [row for row in tables if not row.startswith("| promise ")]


def _without_test(text: str) -> list[str]:
    return [row for row in _rows(text) if not _TEST.search(row)]


def _missing(text: str) -> list[str]:
    found = _TEST.findall(text)
    return [f"{path}::{name}" for path, name in found if name not in _functions(ROOT / path)]


def test_every_promise_names_a_test() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(_rows(text)) >= 60
    assert _without_test(text) == []


def test_every_named_test_exists() -> None:
    assert _missing(PAGE.read_text(encoding="utf-8")) == []


def test_the_checks_can_fail() -> None:
    here = "tests/docs/test_security_claims.py"
    rows = f"{HEADING}\n| promise | proved by |\n|---|---|\n| a | none |\n| b | `{here}::test_never` |\n"
    assert _without_test(rows) == ["| a | none |"]
    assert _missing(rows) == [f"{here}::test_never"]
