"""Other people's MCP clients and proxies, each in an environment of its own: their versions do not agree."""

from pathlib import Path

from tests.parts.install import HERE, KEPT, digest, pip_environment, stamped_python

RECIPES = HERE / "peers"


def find(name: str) -> Path | None:
    folder = KEPT / "peers" / name
    return stamped_python(folder, digest(RECIPES / f"{name}.lock"))


def fetch(name: str) -> Path:
    folder = KEPT / "peers" / name
    pip_environment(folder, RECIPES / f"{name}.lock")
    return folder / "bin/python"


def find_fastmcp() -> Path | None:
    return find("fastmcp")


def fetch_fastmcp() -> Path:
    return fetch("fastmcp")


def find_pydantic_ai() -> Path | None:
    return find("pydantic_ai")


def fetch_pydantic_ai() -> Path:
    return fetch("pydantic_ai")
