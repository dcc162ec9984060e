"""The garbage collector is off while loading, and only then."""

import gc
import subprocess
import sys

from toolcrib.cli import pause_collector, resume_collector


def test_it_is_back_on_when_loading_is_done() -> None:
    try:
        pause_collector()
        assert not gc.isenabled()
        resume_collector()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.enable()
        gc.unfreeze()


def test_nothing_happens_to_a_program_that_did_not_begin() -> None:
    resume_collector()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_tools_run_with_the_collector_on() -> None:
    program = (
        "import gc, sys, toolcrib.cli.tools as tools; from toolcrib.cli import main; "
        "sys.argv = ['toolcrib', 'tools']; "
        "tools.show_table = lambda *_: print(gc.isenabled(), gc.get_freeze_count() > 0); main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"
