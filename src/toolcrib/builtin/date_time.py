"""Tells the date and time in any time zone."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from anyio import to_thread
from pydantic import Field

from toolcrib.errors import BusinessRuleError
from toolcrib.names import similar_names
from toolcrib.sdk import ToolContext, tool

# The names of the C library follow the locale of the process; the sentence is English whatever it is.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DateTimeInfo:
    """One point in time, in every form an agent may want."""

    iso: str
    date: str
    time: str
    weekday: str
    timezone: str
    utc_offset: str
    unix: int
    spoken: str


@tool(
    name="get-datetime",
    title="Date and time",
    category="query",
    response_time="fast",
    tags=["time", "local"],
    speech_field="spoken",
    examples=[
        {
            "description": "What time is it in Tokyo?",
            "params": {"time_zone": "Asia/Tokyo"},
            "expectedResult": {
                "iso": "2026-03-03T09:05:00+09:00",
                "weekday": "Tuesday",
                "timezone": "Asia/Tokyo",
            },
        }
    ],
)
async def get_datetime(
    ctx: ToolContext,
    time_zone: Annotated[
        str | None,
        Field(
            description="IANA name of the zone, such as Europe/Berlin; the user's own where it is left out.",
            min_length=1,
            max_length=64,
        ),
    ] = None,
) -> DateTimeInfo:
    """Tell the current date and time in a time zone.

    Use it whenever the answer depends on now: what time it is somewhere, which day of the week it is, how
    long until something. Returns the moment as ISO 8601, its parts, the offset from UTC, the Unix time and
    a sentence to speak.
    """
    zone = await _zone(time_zone or ctx.time_zone)
    return moment(datetime.now(zone))


def moment(now: datetime) -> DateTimeInfo:
    """Spell out a moment that knows its time zone."""
    zone = str(now.tzinfo)
    place = zone.rpartition("/")[2].replace("_", " ")
    day = f"{_DAYS[now.weekday()]}, {now.day} {_MONTHS[now.month - 1]} {now.year}"
    return DateTimeInfo(
        iso=now.isoformat(timespec="seconds"),
        date=now.date().isoformat(),
        time=f"{now:%H:%M:%S}",
        weekday=_DAYS[now.weekday()],
        timezone=zone,
        utc_offset=now.isoformat(timespec="seconds")[19:],
        unix=int(now.timestamp()),
        spoken=f"It is {now:%H:%M} on {day} in {place}.",
    )


async def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        # The list of all zones is read from many files: off the loop, and only when a name was wrong.
        likely = await to_thread.run_sync(_similar_zones, name)
    meant = f"did you mean {' or '.join(likely)}" if likely else "write it like Europe/Berlin"
    raise BusinessRuleError("UNKNOWN_TIME_ZONE", f"there is no time zone {name}; {meant}?") from None


def _similar_zones(name: str) -> list[str]:
    places = _places()
    return [places[each] for each in similar_names(name.rpartition("/")[2], places)]


@cache
def _places() -> dict[str, str]:
    """Every zone by its place: `Berlin` is `Europe/Berlin`."""
    return {zone.rpartition("/")[2]: zone for zone in sorted(available_timezones())}
