"""Benchmark runner: starts servers, applies load in interleaved rounds, prints and stores the results."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.checkout_comparison import CPU_ROUNDS, HEADER, comparisons, set_up
from bench.cores import find_cores, load_warning
from bench.gateways import versions
from bench.load_generator import find_load_generator
from bench.parts import PARTS
from bench.report import terminal_report
from bench.requests import UnexpectedResponse
from bench.results_files import HERE, write_results
from bench.rounds import Plan, measure
from bench.run_results import RunResults
from bench.running_servers import RunningServers
from bench.server_process import StartError

TEMPORARY_RESULTS = HERE / "results"


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 s; the docs are not updated")
    parser.add_argument("--rounds", type=int, help="rounds per case (default: 5)")
    parser.add_argument("--seconds", type=float, help="seconds per round (default: 2)")
    parser.add_argument(
        "--connections",
        type=int,
        nargs="+",
        help="concurrent connections (default: 1 16 64; with --quick: 1 16)",
    )
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="run only these parts")
    parser.add_argument(
        "--own-client", action="store_true", help="use the Python load client even if wrk is available"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help=f"compare the CPU time of calls with another checkout that has a .venv ({CPU_ROUNDS} rounds)",
    )
    parser.add_argument("--into", type=Path, help="folder for results.json and the charts")
    return parser.parse_args(arguments)


def run_benchmark(options: argparse.Namespace) -> RunResults:
    """Run the selected parts and return their results."""
    cores, load_note = find_cores(), load_warning()
    # The robot of the part `hints` sends no load, so that it needs no load generator.
    load = find_load_generator(cores, own=options.own_client or set(options.only) == {"hints"})
    plan = Plan(
        rounds=options.rounds or (2 if options.quick else 5),
        seconds=options.seconds or (1.0 if options.quick else 2.0),
        connections=tuple(options.connections or ((1, 16) if options.quick else (1, 16, 64))),
    )
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = RunningServers(stack, Path(folder), cores)
        for part in options.only:
            PARTS[part](servers)
        measured = measure(servers.cases, load.run_load, plan) if servers.cases else {}
        return RunResults(
            plan=plan,
            load=load.name,
            cores=os.cpu_count() or 1,
            pinned=cores.pinned,
            notes=tuple(note for note in (cores.note, load.note, load_note, *servers.notes) if note),
            versions=versions(servers.processes),
            processes=dict(servers.processes),
            measured=measured,
            findings=servers.findings,
        )


def compare_checkouts(options: argparse.Namespace) -> None:
    """Print the CPU time of calls in this checkout and in another one."""
    cores, load_note = find_cores(), load_warning()
    load = find_load_generator(cores, own=options.own_client)
    plan = Plan(
        rounds=options.rounds or CPU_ROUNDS,
        seconds=options.seconds or 2.0,
        connections=tuple(options.connections or (16,)),
    )
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = RunningServers(stack, Path(folder), cores)
        set_up(servers, options.against)
        measured = measure(servers.cases, load.run_load, plan)
    print(*filter(None, (cores.note, load.note, load_note)), sep="\n", file=sys.stderr)
    print("\n".join((HEADER, *(each.row for each in comparisons(measured)))))


def main(arguments: Sequence[str]) -> int:
    options = parse_options(arguments)
    try:
        if options.against is not None:
            compare_checkouts(options)
            return 0
        results = run_benchmark(options)
    except (StartError, UnexpectedResponse) as error:
        print(error, file=sys.stderr)
        return 1
    print(terminal_report(results))
    # Only a complete run is written to the documentation.
    complete = not options.quick and set(options.only) == set(PARTS)
    for path in write_results(results, options.into or (None if complete else TEMPORARY_RESULTS)):
        print(f"wrote {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
