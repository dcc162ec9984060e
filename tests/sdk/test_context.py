"""A function receives its caller and can report progress."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

import pytest
from anyio import to_thread

from toolcrib.model import Call, Caller, Origin, Progress
from toolcrib.sdk import ToolContext
from toolcrib.testing import a_call

CORRELATION = "5f0c1b4e-3d1e-4f5e-9a27-6f4a3b2c1d0e"
ORIGIN = Origin(
    agent_id="planner",
    agent_version="2.1",
    session_id="s-1",
    trace_id="0af7651916cd43dd8448eb211c80319c",
    correlation_id=CORRELATION,
    metadata={"turn": 3},
)
CALLER = Caller(id="key:a", user="u1", language="de", time_zone="Europe/Berlin")


@pytest.mark.requirement("D16")
def test_session_defaults_to_that_of_the_user() -> None:
    here = replace(CALLER, session="own")
    unsaid = replace(ORIGIN, session_id=None)
    assert ToolContext.of(a_call(caller=here, origin=unsaid)).session_id == "own"
    assert ToolContext.of(a_call(caller=here, origin=ORIGIN)).session_id == "s-1"
    assert ToolContext.of(a_call(caller=CALLER, origin=unsaid)).session_id is None


@pytest.mark.requirement("E5")
def test_context_has_caller_and_trace() -> None:
    context = ToolContext.of(a_call(caller=CALLER, origin=ORIGIN))
    spelled = context.as_json()
    moment = datetime.fromisoformat(spelled.pop("timestamp"))
    assert moment.tzinfo is not None
    assert abs(moment.timestamp() - context.at) < 0.002
    assert spelled == {
        "userId": "u1",
        "sessionId": "s-1",
        "correlationId": CORRELATION,
        "traceId": "0af76519-16cd-43dd-8448-eb211c80319c",
        "agentId": "planner",
        "agentVersion": "2.1",
        "metadata": {"turn": 3},
        "language": "de",
        "timeZone": "Europe/Berlin",
    }
    assert UUID(context.trace_id).hex == ORIGIN.trace_id


@pytest.mark.requirement("E5")
def test_a_system_call_has_no_user_and_ids_that_are_uuids_stay() -> None:
    context = ToolContext.of(a_call(origin=Origin(trace_id=CORRELATION)))
    assert context.user_id is None
    assert context.session_id is None
    assert context.trace_id == CORRELATION
    assert (context.agent_id, context.agent_version) == ("unknown", "0")


@pytest.mark.requirement("E5")
def test_a_context_made_for_a_test_has_ids_too() -> None:
    context = ToolContext()
    assert len({UUID(context.trace_id), UUID(context.correlation_id), UUID(ToolContext().trace_id)}) == 3


def reporting(into: list[Progress]) -> Call:
    async def report(progress: Progress) -> None:
        into.append(progress)

    return a_call(report=report)


async def test_progress_from_async_and_sync_code_reaches_caller() -> None:
    heard: list[Progress] = []
    context = ToolContext.of(reporting(heard))
    await context.report(1, 3, "one")
    await to_thread.run_sync(context.report_sync, 2, 3, "two")
    assert heard == [Progress(done=1, total=3, message="one"), Progress(done=2, total=3, message="two")]


async def test_report_without_listener_does_nothing() -> None:
    await ToolContext().report(1)
    ToolContext().report_sync(1)


async def test_report_sync_on_event_loop_is_refused() -> None:
    with pytest.raises(RuntimeError):
        ToolContext.of(reporting([])).report_sync(1)
