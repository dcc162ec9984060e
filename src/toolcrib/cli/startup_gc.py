"""Loads without the garbage collector: what is loaded stays, and looking for garbage in it takes its time."""

import gc


def pause_collector() -> None:
    """Leave the collector off while modules are loaded. Ended by `done`."""
    gc.disable()


def resume_collector() -> None:
    """Switch the collector on again, and spare it all that is there by now: it stays as long as we do."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
