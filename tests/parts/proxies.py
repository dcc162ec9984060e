"""Other people's MCP gateways on Node, which the bench sets beside ours."""

from pathlib import Path

from tests.parts import node
from tests.parts.install import HERE, KEPT

RECIPE = HERE / "proxies"
FOLDER = KEPT / "proxies"
PROGRAMS = FOLDER / "node_modules/.bin"


def find() -> Path | None:
    return PROGRAMS if PROGRAMS.is_dir() and node.installed(FOLDER, RECIPE) else None


def fetch() -> Path:
    node.install(FOLDER, RECIPE)
    return PROGRAMS
