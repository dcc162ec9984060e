"""`make mutants`: put small faults into the code and see which no test notices, beside those we accept."""

import argparse
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.mutation.imported import try_again
from tests.mutation.report import Accepted, Mutant, accepted, mutants, unlisted
from tests.parts import Missing
from tests.parts.install import ROOT
from tests.parts.registry import take

HERE = Path(__file__).resolve().parent
TREE = ROOT / "mutants"
LEAST = 85
"""The percentage of mutants that must be killed per module."""


def main() -> int:
    asked = argparse.ArgumentParser(prog="make mutants")
    asked.add_argument("modules", nargs="*", help="such as steps.limit or hints.*; all of them without")
    asked.add_argument("--jobs", type=int, default=1, help="how many mutants are tried at once")
    asked.add_argument("--report", action="store_true", help="only say again what the last run found")
    options = asked.parse_args()
    if not options.report:
        code = run([f"toolcrib.{module}.*" for module in options.modules], options.jobs)
        if code:
            return code
    lines, content = verdict(tuple(mutants(TREE / "src/toolcrib")), known())
    print("\n".join(lines))
    return 0 if content else 1


def known() -> tuple[Accepted, ...]:
    return accepted((HERE / "survivors.toml").read_text())


def run(names: Sequence[str], jobs: int) -> int:
    """Run mutmut from scratch: its cache may be older than the tests."""
    try:
        python = take("mutmut")
    except Missing as missing:
        print(f"no mutmut: {missing}")
        return 2
    shutil.rmtree(TREE, ignore_errors=True)
    beside = next(python.parent.parent.glob("lib/python*/site-packages"))
    # -P: the copies are imported, not the tests of this folder.
    launch = [sys.executable, "-P", HERE / "launch.py", beside]
    code = subprocess.run(
        [*launch, "run", "--max-children", str(jobs), *names], cwd=ROOT, check=False
    ).returncode
    if not code:
        try_again(TREE, beside, jobs, unlisted(mutants(TREE / "src/toolcrib"), known()))
    return code


def verdict(found: Sequence[Mutant], entries: Sequence[Accepted]) -> tuple[list[str], bool]:
    """Return the lines of the report, and whether the run passes."""
    modules: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in found:
        modules[mutant.module].append(mutant)
    survivors = [mutant for mutant in found if not mutant.killed]
    strange = unlisted(found, entries)
    low = [module for module, ones in modules.items() if share(ones) < LEAST]
    lines = [f"{share(ones):6.1f} %  {len(ones):5}  {module}" for module, ones in modules.items()]
    lines.append(f"{share(found):6.1f} %  {len(found):5}  of all, and {len(survivors)} survived")
    lines += [f"not in the list: {one.where}: {one.change}" for one in strange]
    lines += [f"in the list, and not among these survivors: {change}" for change in _needless(entries, found)]
    lines += [f"too few are killed in {module}: {LEAST} % must be" for module in low]
    return lines, bool(found) and not low and not strange


def share(ones: Sequence[Mutant]) -> float:
    """The percentage of killed mutants."""
    return 100 * sum(one.killed for one in ones) / len(ones) if ones else 0.0


def _needless(entries: Sequence[Accepted], found: Sequence[Mutant]) -> list[str]:
    """Return accepted entries of tested functions without survivors."""
    single = [replace(entry, changes=(change,)) for entry in entries for change in entry.changes]
    tried = [entry for entry in single if any(entry.about(one) for one in found)]
    return [
        entry.changes[0] for entry in tried if not any(entry.covers(one) for one in found if not one.killed)
    ]


if __name__ == "__main__":
    sys.exit(main())
