"""Pauses the garbage collector while modules are imported: it would scan objects that all stay alive."""

import gc


def pause_collector() -> None:
    """Turn the collector off, until `resume_collector`."""
    gc.disable()


def resume_collector() -> None:
    """Turn the collector on; existing objects live as long as the process, so it never scans them."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
