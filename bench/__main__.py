"""`python -m bench`: servers beside each other under the same load, and what came of it printed and kept."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.against import CPU_ROUNDS, HEADER, comparisons, set_up
from bench.asking import WrongAnswer
from bench.cores import find_cores, others_at_work
from bench.gateways import versions
from bench.keeping import HERE, keep
from bench.load import find_load
from bench.outcome import Outcome
from bench.parts import PARTS
from bench.process import NotStarted
from bench.report import terminal
from bench.rounds import Plan, measure
from bench.stage import Stage

PASSING = HERE / "results"


def options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 s, kept out of the docs")
    parser.add_argument("--rounds", type=int, help="how often each case is measured (5)")
    parser.add_argument("--seconds", type=float, help="how long each time (2)")
    parser.add_argument("--connections", type=int, nargs="+", help="at once (1 16 64, or 1 16 if quick)")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="these parts alone")
    parser.add_argument("--own-client", action="store_true", help="our own client even where wrk is")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help=f"compare the CPU time of calls with another checkout that has a .venv ({CPU_ROUNDS} rounds)",
    )
    parser.add_argument("--into", type=Path, help="folder for results.json and the pictures")
    return parser.parse_args(words)


def run(given: argparse.Namespace) -> Outcome:
    """Measure what is asked for."""
    cores, busy = find_cores(), others_at_work()
    # The robot loads nothing, so no program has to be had for that.
    load = find_load(cores, own=given.own_client or set(given.only) == {"hints"})
    plan = Plan(
        rounds=given.rounds or (2 if given.quick else 5),
        seconds=given.seconds or (1.0 if given.quick else 2.0),
        connections=tuple(given.connections or ((1, 16) if given.quick else (1, 16, 64))),
    )
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stage = Stage(stack, Path(folder), cores)
        for part in given.only:
            PARTS[part](stage)
        measured = measure(stage.cases, load.drive, plan) if stage.cases else {}
        return Outcome(
            plan=plan,
            load=load.name,
            cores=os.cpu_count() or 1,
            pinned=cores.pinned,
            notes=tuple(note for note in (cores.note, load.note, busy, *stage.notes) if note),
            versions=versions(stage.peers),
            peers=dict(stage.peers),
            measured=measured,
            findings=stage.findings,
        )


def compare(given: argparse.Namespace) -> None:
    """Print what a call costs in this checkout and in another one."""
    cores, busy = find_cores(), others_at_work()
    load = find_load(cores, own=given.own_client)
    plan = Plan(
        rounds=given.rounds or CPU_ROUNDS,
        seconds=given.seconds or 2.0,
        connections=tuple(given.connections or (16,)),
    )
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stage = Stage(stack, Path(folder), cores)
        set_up(stage, given.against)
        measured = measure(stage.cases, load.drive, plan)
    print(*filter(None, (cores.note, load.note, busy)), sep="\n", file=sys.stderr)
    print("\n".join((HEADER, *(each.row for each in comparisons(measured)))))


def main(words: Sequence[str]) -> int:
    given = options(words)
    try:
        if given.against is not None:
            compare(given)
            return 0
        outcome = run(given)
    except (NotStarted, WrongAnswer) as trouble:
        print(trouble, file=sys.stderr)
        return 1
    print(terminal(outcome))
    # What is not the whole measurement stays out of the documentation.
    whole = not given.quick and set(given.only) == set(PARTS)
    for path in keep(outcome, given.into or (None if whole else PASSING)):
        print(f"wrote {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
