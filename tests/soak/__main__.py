"""`python -m tests.soak`: every acceptance check at its full figure, as a table; 1 where one is unproved."""

import argparse
import sys
from collections.abc import Sequence

from tests import figures
from tests.gates.tree import ROOT
from tests.soak.checks import CHECKS, TOTAL, Check
from tests.soak.report import keep, line, summary
from tests.soak.run import Outcome, proofs, run


def options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="of mixed load in check 38 (30)")
    parser.add_argument(
        "--kills", type=int, default=200, help="of the gateway in check 21, per database (200)"
    )
    parser.add_argument("--only", type=numbers, help="these checks alone, such as 21,38")
    parser.add_argument(
        "--list", action="store_true", help="name the checks and their tests, and run nothing"
    )
    return parser.parse_args(words)


def numbers(text: str) -> frozenset[int]:
    """Read numbers of checks."""
    try:
        found = frozenset(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be numbers with commas, such as 21,38") from None
    if unknown := sorted(found - {check.number for check in CHECKS}):
        raise argparse.ArgumentTypeError(f"{unknown} must be between 1 and {TOTAL}")
    return found


def listed(check: Check) -> str:
    """Return a line that names a check and the files with its tests."""
    names = ", ".join(path.relative_to(ROOT / "tests").as_posix() for path in proofs().get(check.number, ()))
    return f"{check.number:2}  {check.name}: {check.not_applicable or names or 'no test has its mark'}"


def main(words: Sequence[str]) -> int:
    """Run the chosen checks."""
    given = options(words)
    chosen = [check for check in CHECKS if given.only is None or check.number in given.only]
    if given.list:
        print("\n".join(map(listed, chosen)))
        return 0
    more = {figures.MINUTES: str(given.minutes), figures.KILLS: str(given.kills)}
    outcomes: list[Outcome] = []
    for check in chosen:
        outcomes.append(run(check, more))
        print(line(outcomes[-1]), flush=True)
    print(f"\n{summary(outcomes)}; kept in {keep(outcomes)}")
    return int(any(outcome.result in {"fail", "incomplete"} for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
