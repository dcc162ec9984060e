"""Reads spans of time and moments on the command line: `90s`, `30m`, `12h`, `30d`, `4w`, or a date."""

import re
from time import time
from typing import Any

import click

from toolcrib.errors import Refused

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_SPAN = re.compile(r"([0-9]{1,9})([smhdw])")


def _span(text: str) -> float | None:
    found = _SPAN.fullmatch(text)
    return None if found is None else float(int(found[1]) * _UNITS[found[2]])


class SpanParameter(click.ParamType[float]):
    """A span of time, in seconds."""

    name = "SPAN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        span = _span(str(value))
        if span is None:
            self.fail(f"{value!r} is no span of time; write it as 90s, 30m, 12h, 30d or 4w", param, ctx)
        return span


class MomentParameter(click.ParamType[float]):
    """A moment, in seconds since 1970: a span from now on, or a date."""

    name = "SPAN|DATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        span = _span(str(value))
        if span is not None:
            return time() + span
        # Late, because only this option needs it.
        from toolcrib.admin.key_admin import read_moment

        try:
            return read_moment(str(value), "it")
        except Refused:
            said = f"{value!r} is neither a span such as 30d nor a date such as 2027-01-31"
            self.fail(said, param, ctx)
