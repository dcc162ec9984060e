"""The origin of a call: from the headers of trusted callers, else a default."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.requests import request
from toolcrib.http import CallOrigins, call_timeout
from toolcrib.http.request import as_uuid

ORIGINS = CallOrigins(lambda: "new-id")
TRACE = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
SPAN = "00f067aa0ba902b7"


def test_origin_without_headers() -> None:
    origin = ORIGINS.of(request(), "rest")
    assert (origin.agent_id, origin.agent_version, origin.session_id, origin.face) == (
        "unknown",
        "0",
        None,
        "rest",
    )
    assert origin.trace_id == origin.correlation_id == "new-id"
    assert (origin.parent, origin.sampled) == ("", True)


def test_origin_with_all_headers() -> None:
    correlation = "6f1c0f5e-8a37-4d6c-9d7e-0d3f5b6a7c8d"
    headers = {
        "x-agent-id": "pilot",
        "x-agent-version": "1.2",
        "x-session-id": "s 1",
        "x-correlation-id": correlation,
        "traceparent": f"00-{TRACE.replace('-', '')}-{SPAN}-00",
    }
    origin = ORIGINS.of(request(headers=headers), "mcp")
    assert (origin.agent_id, origin.agent_version, origin.session_id) == ("pilot", "1.2", "s 1")
    assert (origin.trace_id, origin.parent, origin.sampled) == (TRACE, SPAN, False)
    assert (origin.correlation_id, origin.face) == (correlation, "mcp")


@pytest.mark.parametrize("value", ["", " x", "x ", "x\ty", "é", "x" * 129, "\x00", "x\x7f"])
def test_a_malformed_value_counts_as_not_given(value: str) -> None:
    origin = ORIGINS.of(
        request(headers={"x-agent-id": value, "traceparent": value, "x-correlation-id": value}), "rest"
    )
    assert (origin.agent_id, origin.trace_id, origin.correlation_id) == ("unknown", "new-id", "new-id")


@given(text=st.text())
def test_any_id_has_one_uuid(text: str) -> None:
    assert as_uuid(text) == as_uuid(text)
    assert as_uuid(as_uuid(text)) == as_uuid(text)
    assert str(UUID(as_uuid(text))) == as_uuid(text)


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({}, None),
        ({"x-timeout-ms": "1500"}, 1.5),
        ({"x-timeout-ms": "0"}, 0.0),
        ({"x-timeout-ms": "999999999"}, 300.0),
        ({"x-timeout-ms": "9" * 30}, None),
        ({"x-timeout-ms": "-1"}, None),
        ({"x-timeout-ms": "1.5"}, None),
        ({"x-timeout-ms": "x", "prefer": "wait=7"}, 7.0),
        ({"prefer": "wait=10"}, 10.0),
        ({"prefer": "respond-async, wait=10"}, 10.0),
        ({"prefer": "wait=100000"}, 300.0),
        ({"prefer": "await=10"}, None),
        ({"prefer": "wait=x"}, None),
    ],
)
def test_how_long_the_caller_waits(headers: dict[str, str], seconds: float | None) -> None:
    assert call_timeout(request(headers=headers)) == seconds
