"""Parses the lock files: versions, hashes and addresses."""

import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.gates.tree import ROOT

LOCKS = tuple(sorted([*ROOT.glob("requirements*.lock"), *(ROOT / "tests/parts").glob("*/*.lock")]))
ADDRESS = re.compile(r"://|--(extra-)?index-url|--find-links|(?<![\w-])-[if] |@ file:")


def entries(text: str) -> list[str]:
    """Requirements of a lock, each with its hashes as one line."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def requirement(entry: str) -> Requirement:
    return Requirement(entry.partition(" --hash=")[0])


def unhashed(text: str) -> list[str]:
    return [entry for entry in entries(text) if not re.search(r" --hash=sha256:[0-9a-f]{64}", entry)]


def addresses(text: str) -> list[str]:
    return [line for line in text.splitlines() if ADDRESS.search(line)]


def versions(lock: Path, *, here: bool = False) -> dict[str, str]:
    """Locked version per package; with `here`, only packages installed on this machine."""
    wanted = [requirement(entry) for entry in entries(lock.read_text())]
    chosen = [one for one in wanted if not here or one.marker is None or one.marker.evaluate()]
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in chosen}
