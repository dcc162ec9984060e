"""The command line: the module of a command is imported when that command runs."""

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn


def main() -> NoReturn:
    """Run the command in `sys.argv` and exit with its status."""
    pause_collector()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return 0 on success, 1 if the tool or the check failed, 2 on a usage error."""
    from toolcrib.cli.commands import toolcrib

    try:
        outcome = toolcrib.main(list(arguments), prog_name="toolcrib", standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - outermost boundary: a traceback is printed only on request
        from toolcrib.cli.error_output import report_error

        return report_error(error, as_json="--json" in arguments)
    return outcome if isinstance(outcome, int) else 0


def pause_collector() -> None:
    """Pause garbage collection while modules are imported: it would scan objects that all stay alive."""
    gc.disable()


def resume_collector() -> None:
    """Turn the collector on; existing objects live as long as the process, so it never scans them."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
