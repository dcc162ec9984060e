"""A thousand clients that only listen leave the calls of others alone, and all hear of a change."""

from pathlib import Path

import pytest

from tests.figures import Record, figure, is_soak
from tests.walks.idle_streams import STREAMS, idle_streams

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.check(39),
    pytest.mark.requirement("I5"),
]

SECONDS = figure(short=2.0, long=10.0)
TOLD_SECONDS = 10.0
"""Leaves room for a busy machine; `Figures.shortfalls` is strict."""


async def test_thousand_idle_streams_are_notified(tmp_path: Path, record_property: Record) -> None:
    figures = await idle_streams(SECONDS, home=tmp_path)
    record_property("figure", str(figures))
    if is_soak():
        assert figures.shortfalls == [], str(figures)
    assert figures.told == STREAMS
    assert figures.told_within < TOLD_SECONDS
    assert figures.calls == round(SECONDS * 200)
