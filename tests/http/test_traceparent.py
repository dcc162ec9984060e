"""A traceparent is parsed strictly; an invalid one is ignored."""

from uuid import UUID

import pytest

from toolcrib.formats.traceparent import TraceParent, parse_traceparent

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@pytest.mark.requirement("E14")
@pytest.mark.parametrize(
    "header, sampled",
    [
        (f"00-{TRACE}-{PARENT}-01", True),
        (f"00-{TRACE}-{PARENT}-00", False),
        (f"00-{TRACE}-{PARENT}-03", True),
        (f" 00-{TRACE}-{PARENT}-01 ", True),
        (f"cc-{TRACE}-{PARENT}-01-what-the-future-brings", True),
    ],
)
def test_a_traceparent_is_read(header: str, sampled: bool) -> None:
    assert parse_traceparent(header) == TraceParent(str(UUID(TRACE)), PARENT, sampled)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nonsense",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE[:-1]}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-01\n00",
    ],
)
def test_invalid_traceparent_is_ignored(header: str) -> None:
    assert parse_traceparent(header) is None
