"""Test support: the tool checklist as one assertion, and fake tools, callers, calls and sources."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.testing.fakes import Answer, FakeSource, Recordings, a_call, a_caller, a_tool, echo
    from toolcrib.testing.module_check import check_tools

__all__ = ["Answer", "FakeSource", "Recordings", "a_call", "a_caller", "a_tool", "check_tools", "echo"]


def __getattr__(name: str) -> object:
    # Lazy import, because pytest loads this package in every project that has Toolcrib installed.
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module = "module_check" if name == "check_tools" else "fakes"
    return getattr(import_module(f"{__name__}.{module}"), name)
