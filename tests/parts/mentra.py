"""The SDK of Mentra's glasses apps, for an app of ours that is written as its authors write theirs."""

from pathlib import Path

from tests.parts import node
from tests.parts.install import HERE, KEPT

RECIPE = HERE / "mentra"
FOLDER = KEPT / "mentra"
PACKAGE = FOLDER / "node_modules/@mentra/sdk"


def find() -> Path | None:
    return PACKAGE if PACKAGE.is_dir() and node.installed(FOLDER, RECIPE) else None


def fetch() -> Path:
    node.install(FOLDER, RECIPE)
    return PACKAGE
