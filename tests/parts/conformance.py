"""The protocol's own conformance suite: a folder of npm's, and the script in it that Node runs."""

from pathlib import Path

from tests.parts import node
from tests.parts.install import HERE, KEPT

RECIPE = HERE / "conformance"
FOLDER = KEPT / "conformance"
SUITE = FOLDER / "node_modules/@modelcontextprotocol/conformance"


def find() -> Path | None:
    return SUITE if SUITE.is_dir() and node.installed(FOLDER, RECIPE) else None


def fetch() -> Path:
    node.install(FOLDER, RECIPE)
    return SUITE
