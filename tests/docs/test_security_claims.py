"""Every promise of the page on security names tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "security.md"
TABLE_HEAD = "| promise | proved by |"
SECTIONS_WITH_PROMISES = {
    "Outgoing connections": 10,
    "Secrets": 25,
    "Connection limits per principal": 11,
    "Resource exhaustion": 3,
    "Guarantees and their tests": 60,
}
"""How many rows each section has at least, those of its subsections included."""
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
    """Return the rows of all tables of promises, without their heads."""
    rows: list[str] = []
    in_table = False
    for line in text.splitlines():
        in_table = line == TABLE_HEAD or (in_table and line.startswith("|"))
        if in_table and line != TABLE_HEAD and not _SEPARATOR.fullmatch(line):
            rows.append(line)
    return rows


def _section(text: str, heading: str) -> str:
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def _without_test(text: str) -> list[str]:
    return [row for row in _rows(text) if not _TEST.search(row)]


def _missing(text: str) -> list[str]:
    found = _TEST.findall(text)
    return [f"{path}::{name}" for path, name in found if name not in _functions(ROOT / path)]


def test_every_promise_names_a_test() -> None:
    assert _without_test(PAGE.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("heading, least", SECTIONS_WITH_PROMISES.items())
def test_every_section_keeps_its_promises_in_rows(heading: str, least: int) -> None:
    assert len(_rows(_section(PAGE.read_text(encoding="utf-8"), heading))) >= least


def test_every_named_test_exists() -> None:
    assert _missing(PAGE.read_text(encoding="utf-8")) == []


def test_the_checks_can_fail() -> None:
    here = "tests/docs/test_security_claims.py"
    table = f"{TABLE_HEAD}\n|---|---|\n| a | none |\n| b | `{here}::test_never` |\n"
    text = f"# Page\n\n## One\n\n{table}\n## Two\n\n| other | table |\n|---|---|\n| c | none |\n"
    assert _without_test(text) == ["| a | none |"]
    assert _missing(text) == [f"{here}::test_never"]
    assert [len(_rows(_section(text, heading))) for heading in ("One", "Two", "Three")] == [2, 0, 0]
