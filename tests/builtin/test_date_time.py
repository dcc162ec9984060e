"""The date-time tool knows every time zone and suggests names."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from toolcrib.builtin.date_time import DateTimeInfo, get_datetime, moment
from toolcrib.errors import BusinessRuleError
from toolcrib.sdk import ToolContext

TUESDAY = datetime(2026, 3, 3, 14, 5, 9, tzinfo=UTC)


def test_moment_in_every_format() -> None:
    assert moment(TUESDAY.astimezone(ZoneInfo("America/New_York"))) == DateTimeInfo(
        iso="2026-03-03T09:05:09-05:00",
        date="2026-03-03",
        time="09:05:09",
        weekday="Tuesday",
        timezone="America/New_York",
        utc_offset="-05:00",
        unix=1772546709,
        spoken="It is 09:05 on Tuesday, 3 March 2026 in New York.",
    )


def test_half_hours_and_days_that_differ() -> None:
    there = moment(datetime(2026, 12, 31, 20, 0, tzinfo=UTC).astimezone(ZoneInfo("Asia/Kolkata")))
    assert (there.iso, there.weekday, there.utc_offset) == ("2027-01-01T01:30:00+05:30", "Friday", "+05:30")


@pytest.mark.requirement("F6")
@pytest.mark.parametrize(
    "asked,own,expected",
    [
        (None, "UTC", "UTC"),
        (None, "Asia/Tokyo", "Asia/Tokyo"),
        ("Europe/Berlin", "Asia/Tokyo", "Europe/Berlin"),
    ],
)
async def test_now_in_requested_or_own_time_zone(asked: str | None, own: str, expected: str) -> None:
    told = await get_datetime(ToolContext(time_zone=own), asked)
    assert told.timezone == expected
    now = datetime.fromisoformat(told.iso)
    assert abs(datetime.now(UTC) - now) < timedelta(seconds=5)
    assert abs(now.timestamp() - told.unix) < 1
    assert told.utc_offset == told.iso[19:]


@pytest.mark.parametrize(
    "asked,meant",
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("Tokio", "Asia/Tokyo"),
    ],
)
async def test_a_zone_that_is_nearly_right_is_named(asked: str, meant: str) -> None:
    with pytest.raises(
        BusinessRuleError, match=f"there is no time zone {asked}; did you mean .*{meant}"
    ) as caught:
        await get_datetime(ToolContext(), asked)
    assert caught.value.problem.tool_code == "UNKNOWN_TIME_ZONE"


@pytest.mark.parametrize(
    "asked", ["Nowhere/Atlantis", "../../etc/passwd", "/etc/localtime", "Europe", "\x00", "", "."]
)
async def test_anything_else_is_refused_with_how_to_write_it(asked: str) -> None:
    with pytest.raises(BusinessRuleError, match="there is no time zone") as raised:
        await get_datetime(ToolContext(time_zone="Not/One"), asked)
    assert raised.value.problem.tool_code == "UNKNOWN_TIME_ZONE"
