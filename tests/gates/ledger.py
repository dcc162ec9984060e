"""Reads requirement marks from test files without running them, and the list of open requirements."""

import ast
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

from tests.gates.tree import ROOT

LEDGER_FILE = "tests/requirements.py"
OPEN_FILE = "tests/open_requirements.txt"


def marks(text: str) -> set[str]:
    """Ids in `pytest.mark.requirement(…)` anywhere in a file."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [
        call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "requirement"
    ]
    values = [
        argument.value for call in named for argument in call.args if isinstance(argument, ast.Constant)
    ]
    return {value for value in values if isinstance(value, str)}


def open_ids(text: str) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def ledger_ids(text: str) -> set[str]:
    """Ids of a (possibly old) ledger: its text is parsed, not executed."""
    tables = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Dict)]
    keys = [key.value for table in tables for key in table.keys if isinstance(key, ast.Constant)]
    return {key for key in keys if isinstance(key, str)}


def marked(files: Iterable[Path]) -> dict[str, set[str]]:
    """Test files by requirement id."""
    proofs: dict[str, set[str]] = {}
    for path in files:
        for one in marks(path.read_text()):
            proofs.setdefault(one, set()).add(path.relative_to(ROOT).as_posix())
    return proofs


def faults(ledger: AbstractSet[str], still_open: list[str], proved: AbstractSet[str]) -> list[str]:
    """Mismatches between ledger, open list and tests."""
    found = [
        f"{one}: no test proves it, and it is not in the open list"
        for one in ledger - proved - set(still_open)
    ]
    found += [f"{one}: a test names it, the ledger does not" for one in proved - ledger]
    found += [f"{one}: in the open list, not in the ledger" for one in set(still_open) - ledger]
    found += [
        f"{one}: twice in the open list" for one in {one for one in still_open if still_open.count(one) > 1}
    ]
    return sorted(found)
