"""Installed packages are the locked ones: every lock entry has a hash and no index URL."""

import json
import re
import site
import tomllib
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.gates import locks
from tests.gates.tree import ROOT, files, name_of

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = ROOT / "requirements.lock"
BUILD = ROOT / "requirements-build.lock"
DEVELOPMENT = ROOT / "requirements-dev.lock"
NODE = sorted((ROOT / "tests/parts").glob("*/package-lock.json"))
SEEDS = {"pip", "setuptools"}
"""Installed by `python -m venv` in the version of that Python; the locks replace them."""
FLOORS = {"pip": "26", "setuptools": "78.1.1"}
"""Older versions have known vulnerabilities."""
PATH_FILES = re.compile(r"(a1_coverage|distutils-precedence|_virtualenv|_?(_editable_impl_)?toolcrib)\.pth")


def test_lock_files_exist() -> None:
    assert {lock.name for lock in locks.LOCKS} >= {
        "requirements.lock",
        "requirements-build.lock",
        "requirements-dev.lock",
        "fastmcp.lock",
        "pydantic_ai.lock",
        "modern.lock",
        "legacy.lock",
    }


@pytest.mark.parametrize("lock", locks.LOCKS, ids=name_of)
@pytest.mark.check(43)
def test_every_locked_package_has_a_hash_and_no_address(lock: Path) -> None:
    text = lock.read_text()
    assert locks.entries(text)
    assert locks.unhashed(text) == []
    assert locks.addresses(text) == []


@pytest.mark.parametrize("lock", NODE, ids=name_of)
def test_node_tools_are_locked_by_hash_without_an_address(lock: Path) -> None:
    text = lock.read_text()
    packages: dict[str, dict[str, Any]] = json.loads(text)["packages"]
    # A bundled package is part of another archive and covered by its hash.
    proved = {name for name, package in packages.items() if package.keys() & {"integrity", "inBundle"}}
    assert [name for name in packages if name and name not in proved] == []
    assert "resolved" not in text
    assert locks.addresses(text) == []


def test_there_is_one_kind_of_lock() -> None:
    assert [
        name_of(path) for path in files() if path.name in {"uv.lock", "poetry.lock", "Pipfile.lock"}
    ] == []


@pytest.mark.parametrize("lock", [RUNTIME, DEVELOPMENT], ids=name_of)
@pytest.mark.check(43)
def test_minimum_versions_are_locked(lock: Path) -> None:
    locked = locks.versions(lock)
    wanted = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
    low = [str(one) for one in wanted if not one.specifier.contains(locked[canonicalize_name(one.name)])]
    assert low == []


@pytest.mark.check(43)
def test_known_vulnerabilities_are_below_minimum_versions() -> None:
    tested = PROJECT["dependency-groups"]["test"]
    floors = {one.name: str(one.specifier) for one in map(Requirement, tested)}
    assert floors["starlette"] == ">=1.0.1"
    assert floors["mcp"] == ">=2.3"


def test_the_locks_agree() -> None:
    everything = locks.versions(DEVELOPMENT)
    for part in (RUNTIME, BUILD):
        differing = {
            name for name, version in locks.versions(part).items() if everything.get(name) != version
        }
        assert differing == set(), part.name


def test_the_runtime_lock_carries_no_test_tools() -> None:
    assert (
        locks.versions(RUNTIME).keys().isdisjoint({"pytest", "ruff", "hypothesis", "asyncpg", "playwright"})
    )


@pytest.mark.check(43)
def test_what_is_installed_is_what_was_locked() -> None:
    locked = locks.versions(DEVELOPMENT, here=True)
    installed: dict[str, str] = {
        canonicalize_name(one.name): one.version for one in distributions() if one.name
    }
    beside = installed.keys() - locked.keys() - {"toolcrib"}
    assert beside == set(), f"not in the lock: pip uninstall {' '.join(sorted(beside))}"
    assert {name: installed.get(name) for name in locked} == locked


@pytest.mark.check(43)
@pytest.mark.parametrize("lock", [BUILD, DEVELOPMENT], ids=name_of)
def test_bundled_packages_are_replaced(lock: Path) -> None:
    locked = locks.versions(lock)
    assert {name: version(name) for name in SEEDS} == {name: locked[name] for name in SEEDS}
    assert {name: Version(locked[name]) >= Version(FLOORS[name]) for name in SEEDS} == dict.fromkeys(
        SEEDS, True
    )


@pytest.mark.check(43)
def test_pth_files_run_no_unknown_code() -> None:
    found = {file.name for folder in site.getsitepackages() for file in Path(folder).glob("*.pth")}
    assert {name for name in found if not PATH_FILES.fullmatch(name)} == set()
