"""The figures of tests that have a short form, for `make test`, and a long one, for `make soak`."""

import os
from collections.abc import Callable
from typing import TypeVar

SOAK = "TOOLCRIB_SOAK"
"""Set to 1, tests run at the figures of the long form."""
MINUTES = "TOOLCRIB_SOAK_MINUTES"
"""How long the mixed load lasts in the long form."""
KILLS = "TOOLCRIB_SOAK_KILLS"
"""How often the gateway is killed for each database in the long form."""

T = TypeVar("T")
Record = Callable[[str, object], None]
"""The type of pytest's `record_property`: tests record under `figure` what they measured."""


def is_soak() -> bool:
    """Whether the long form is wanted."""
    return os.environ.get(SOAK) == "1"


def figure(short: T, long: T) -> T:
    """Return the figure to test at: the short one unless this is a soak."""
    return long if is_soak() else short


def minutes(*, short: float, long: float = 30.0) -> float:
    """Return how many minutes to load the gateway for."""
    return figure(short=short, long=float(os.environ.get(MINUTES) or long))


def kills(*, short: int, long: int = 200) -> int:
    """Return how often to kill the gateway."""
    return figure(short=short, long=int(os.environ.get(KILLS) or long))
