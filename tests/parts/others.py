"""MCP servers of other people: a folder of npm's, and PyPI's in two environments, for mcp 2 and mcp 1."""

from pathlib import Path

from tests.parts import node
from tests.parts.install import HERE, KEPT, digest, pip_environment, stamped_python

RECIPE = HERE / "servers"
FOLDER = KEPT / "servers"
NPM = FOLDER / "npm"
PROGRAMS = NPM / "node_modules/.bin"


def find_npm() -> Path | None:
    return PROGRAMS if PROGRAMS.is_dir() and node.installed(NPM, RECIPE) else None


def fetch_npm() -> Path:
    node.install(NPM, RECIPE)
    return PROGRAMS


def find_python(name: str) -> Path | None:
    python = stamped_python(FOLDER / name, digest(RECIPE / f"{name}.lock"))
    return python and python.parent


def fetch_python(name: str) -> Path:
    pip_environment(FOLDER / name, RECIPE / f"{name}.lock")
    return FOLDER / name / "bin"
