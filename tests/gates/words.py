"""Texts that files must not contain: local paths, registry hosts, unsafe calls."""

import ast
import re
from pathlib import Path

# Split, so that this file passes its own check.
MACHINE = tuple(
    "".join(pieces)
    for pieces in (
        ("..", "/shared"),
        ("/wo", "rk/"),
        ("/opt", "/pypi"),
        ("/ro", "ot/"),
        ("registry", ".npmjs"),
        ("pypi", ".org"),
        ("files.python", "hosted"),
    )
)

BARS: dict[str, re.Pattern[str]] = {
    "a shell": re.compile(r"shell\s*=\s*True|os\.(system|popen)\("),
    "an unsafe YAML loader": re.compile(r"yaml\.(unsafe_|full_)?load\("),
    "pickle": re.compile(r"^\s*(import|from)\s+(pickle|marshal|shelve)\b", re.MULTILINE),
    "eval": re.compile(r"(?<![\w.])(eval|exec)\("),
}
# The URL is client input: callers are identified by credentials, never by the URL.
IDENTITY_BARS: dict[str, re.Pattern[str]] = {
    "the request's address": re.compile(r"\brequest\.(url|base_url)\b")
}
RUNS_SQL = frozenset({"text", "execute", "exec_driver_sql", "executescript", "scalar", "scalars"})


def machine_words(text: str) -> list[str]:
    return [word for word in MACHINE if word in text]


def composed(node: ast.expr) -> bool:
    """Whether a string is composed of values."""
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod) and any(map(composed_or_text, (node.left, node.right)))
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"


def composed_or_text(node: ast.expr) -> bool:
    return composed(node) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def composed_sql(text: str) -> list[int]:
    """Lines that execute SQL composed of values."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.args]
    return [call.lineno for call in calls if called(call) in RUNS_SQL and composed(call.args[0])]


def called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def holes(path: Path, text: str) -> list[str]:
    """Unsafe calls in a source file."""
    bars = BARS | IDENTITY_BARS if "identity" in path.parts else BARS
    found = [f"{path}: {name}" for name, pattern in bars.items() if pattern.search(text)]
    return found + [f"{path}:{line}: SQL put together from values" for line in composed_sql(text)]
