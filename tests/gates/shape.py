"""Size and naming rules for files, functions and names, without exceptions."""

import ast
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.gates.static import BIN

FILE_LINES = 500
FUNCTION_LINES = 40
COMPLEXITY = 8
POSITIONAL = 5
FORBIDDEN = frozenset({"utils", "util", "helpers", "helper", "manager", "service", "base", "common"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def words(name: str) -> set[str]:
    """Words of a name in snake_case or CamelCase; digits belong to the word before them (base64)."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*", name)}


def positional(function: Function, *, method: bool) -> int:
    arguments = function.args
    static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in function.decorator_list)
    count = len(arguments.posonlyargs) + len(arguments.args)
    return count - 1 if method and not static else count


def definitions(
    tree: ast.AST, *, inside_class: bool = False
) -> Iterator[tuple[Function | ast.ClassDef, bool]]:
    """Every function and class, with whether it is a class member."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield node, inside_class
        yield from definitions(node, inside_class=isinstance(node, ast.ClassDef))


def function_faults(function: Function, *, method: bool) -> Iterator[str]:
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    if length > FUNCTION_LINES:
        yield f"{function.lineno}: {function.name} has {length} lines, {FUNCTION_LINES} are allowed"
    count = positional(function, method=method)
    if count > POSITIONAL:
        yield f"{function.lineno}: {function.name} takes {count} positional arguments, not {POSITIONAL}"


def opens_with_a_sentence(tree: ast.Module) -> bool:
    first, _, _ = (ast.get_docstring(tree) or "").partition("\n")
    return len(first.split()) > 1 and first.endswith((".", "!", "?"))


def faults(path: Path, text: str) -> list[str]:
    """Broken rules of one file; complexity is checked separately for all files."""
    tree = ast.parse(text)
    found: list[str] = []
    lines = text.count("\n")
    if lines > FILE_LINES:
        found.append(f"{lines} lines, {FILE_LINES} are allowed")
    # Test folders may have an empty __init__.py; source packages may not.
    if (text or path.parts[0] == "src") and not opens_with_a_sentence(tree):
        found.append("1: the module does not open with a sentence that says what it is")
    for part in path.with_suffix("").parts:
        found += [f"1: `{word}` in the path says nothing" for word in words(part) & FORBIDDEN]
    for node, member in definitions(tree):
        found += [
            f"{node.lineno}: `{word}` in {node.name} says nothing" for word in words(node.name) & FORBIDDEN
        ]
        if not isinstance(node, ast.ClassDef):
            found += function_faults(node, method=member)
    return found


def repeated_classes(files: Iterable[tuple[str, str]]) -> list[str]:
    """Public class names that more than one of these files (name and text) defines."""
    places: dict[str, list[str]] = {}
    for name, text in files:
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name)
    return [f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]


def tangled(files: list[Path]) -> list[str]:
    """Functions over the complexity limit, ignoring noqa comments."""
    limit = f"lint.mccabe.max-complexity={COMPLEXITY}"
    command = [BIN / "ruff", "check", "--isolated", "--no-cache", "--ignore-noqa", "--exit-zero"]
    done = subprocess.run(
        [*command, "--select=C901", f"--config={limit}", "--output-format=json", "--", *files],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)
    return [f"{row['filename']}:{row['location']['row']}: {row['message']}" for row in rows]
