"""The traceparent sent to upstream servers."""

import pytest

from toolcrib.formats.traceparent import parse_traceparent, traceparent
from toolcrib.model import Origin
from toolcrib.testing import a_call

CALL = "00000000-0000-4000-8000-00000000c0de"
TRACE = "0af76519-16cd-43dd-8448-eb211c80319c"


@pytest.mark.parametrize("sampled", [True, False])
def test_traceparent_has_call_as_parent(sampled: bool) -> None:
    written = traceparent(a_call(id=CALL, origin=Origin(trace_id=TRACE, sampled=sampled)))
    assert written is not None
    found = parse_traceparent(written)
    assert found is not None
    assert (found.trace_id, found.parent, found.sampled) == (TRACE, "800000000000c0de", sampled)


@pytest.mark.parametrize(
    "call, trace", [("call-1", TRACE), (CALL, "trace"), (CALL, ""), (CALL, TRACE.upper())]
)
def test_foreign_ids_are_not_written(call: str, trace: str) -> None:
    assert traceparent(a_call(id=call, origin=Origin(trace_id=trace))) is None


def test_zero_trace_id_is_invalid() -> None:
    nothing = Origin(trace_id="00000000-0000-0000-0000-000000000000")
    assert traceparent(a_call(id=CALL, origin=nothing)) is None
