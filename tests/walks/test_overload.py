"""Five times what a gateway can take: most of its work is still done, and the rest is refused at once."""

from pathlib import Path

import pytest

from tests.figures import Record, figure, is_soak
from tests.walks.overload import PAUSE_SECONDS, overload

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.check(34),
    pytest.mark.requirement("I5", "I10"),
]

SECONDS = figure(short=5.0, long=60.0)


async def test_five_times_the_capacity_leaves_goodput(tmp_path: Path, record_property: Record) -> None:
    figures = await overload(SECONDS, home=tmp_path)
    record_property("figure", str(figures))
    if is_soak():
        assert figures.shortfalls == [], str(figures)
    assert figures.overload.goodput >= 0.8 * figures.peak.goodput
    assert set(figures.overload.statuses) <= {200, 429, 503}
    assert figures.overload.statuses[429] + figures.overload.statuses[503] > 0
    assert figures.overload.without_retry == 0
    assert figures.overload.refused_p50 < PAUSE_SECONDS  # none of them waits for a call to end
    assert figures.resident < 512 << 20
    assert figures.normal_after < 5
