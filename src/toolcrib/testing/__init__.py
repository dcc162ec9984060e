"""What tests of tools and of gateways need: the checklist in one line, tools, callers and sources to try."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.testing.fakes import Answer, FakeSource, Recordings, a_call, a_caller, a_tool, echo
    from toolcrib.testing.module_check import check_tools

__all__ = ["Answer", "FakeSource", "Recordings", "a_call", "a_caller", "a_tool", "check_tools", "echo"]


def __getattr__(name: str) -> object:
    # Late, because pytest loads this package in every project that has Toolcrib installed.
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    home = "module_check" if name == "check_tools" else "fakes"
    return getattr(import_module(f"{__name__}.{home}"), name)
