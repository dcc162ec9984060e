"""What became of each mutant, which change it was, and whether a survivor is one of those we accept."""

import ast
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

KILLED = frozenset({1, 3})
"""Exit codes of pytest where a test failed, or could not even run."""
STOPPED = frozenset({-24, 24, 36, 152, 255})
"""Exit codes where the tests hung or span until their time was up."""


@dataclass(frozen=True)
class Mutant:
    """One small fault: the function it is in, and its line as it was and as it became."""

    name: str
    """What mutmut calls it."""
    module: str
    function: str
    change: str
    killed: bool

    @property
    def where(self) -> str:
        return f"{self.module}.{self.function}"


@dataclass(frozen=True)
class Accepted:
    """Accepted survivors with reasons; a star matches any text."""

    where: str
    changes: tuple[str, ...]
    reason: str

    def about(self, mutant: Mutant) -> bool:
        return _like(self.where, mutant.where)

    def covers(self, mutant: Mutant) -> bool:
        return self.about(mutant) and any(_like(one, mutant.change) for one in self.changes)


def accepted(text: str) -> tuple[Accepted, ...]:
    """Read the list of survivors we live with."""
    entries = tomllib.loads(text)["accepted"]
    return tuple(Accepted(one["where"], tuple(one["changes"]), one["reason"]) for one in entries)


def mutants(tree: Path) -> Iterator[Mutant]:
    """Return every tested mutant from mutmut's result files."""
    for book in sorted(tree.rglob("*.py.meta")):
        codes: dict[str, int | None] = json.loads(book.read_text())["exit_code_by_key"]
        tried = {name: code for name, code in codes.items() if code is not None}
        module = ".".join(book.relative_to(tree).with_suffix("").with_suffix("").parts)
        functions = _functions(book.with_suffix("").read_text()) if tried else {}
        for name, code in tried.items():
            function = name.rpartition(".")[2]
            plain = function.partition("__mutmut_")[0]
            change = _change(functions[f"{plain}__mutmut_orig"], functions[function])
            yield Mutant(name, module, _spelt(plain), change, code in KILLED | STOPPED)


def unlisted(found: Iterable[Mutant], known: Sequence[Accepted]) -> list[Mutant]:
    """Return the survivors that are not accepted."""
    return [one for one in found if not one.killed and not any(entry.covers(one) for entry in known)]


def _functions(source: str) -> dict[str, list[str]]:
    """Return the lines of every function without its name, which differs per mutant."""
    nodes = ast.walk(_Uncast().visit(ast.parse(source)))
    found = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: ast.unparse(node).replace(node.name, "").splitlines() for node in found}


class _Uncast(ast.NodeTransformer):
    """Replaces casts by their value, as the first argument only serves the type checker."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        is_cast = isinstance(node.func, ast.Name) and node.func.id == "cast"
        return node.args[1] if is_cast and len(node.args) == 2 else node


def _change(was: list[str], now: list[str]) -> str:
    """Put the lines that differ side by side."""
    start = _alike(was, now)
    was, now = was[start:], now[start:]
    end = _alike(was[::-1], now[::-1])
    return " => ".join(" ".join(line.strip() for line in part[: len(part) - end]) for part in (was, now))


def _alike(one: list[str], other: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _spelt(mangled: str) -> str:
    """Return the source name of a function; mutmut writes `x_function` or `xǁClassǁmethod`."""
    return mangled.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")


def _like(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
