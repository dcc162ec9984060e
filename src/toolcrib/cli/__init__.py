"""The command line: one file a command, loaded when the command is asked for."""

import sys
from collections.abc import Sequence
from typing import NoReturn

from toolcrib.cli import startup_gc


def main() -> NoReturn:
    """Carry out what the command line says and leave with its exit code."""
    startup_gc.pause_collector()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line. 0: done; 1: the tool or the check failed; 2: wrong use."""
    from toolcrib.cli.commands import toolcrib

    try:
        outcome = toolcrib.main(list(arguments), prog_name="toolcrib", standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - the outermost boundary: a user is never shown a traceback unasked
        from toolcrib.cli.error_output import report_error

        return report_error(error, as_json="--json" in arguments)
    return outcome if isinstance(outcome, int) else 0
