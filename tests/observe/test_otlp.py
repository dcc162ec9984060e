"""Calls as a collector gets them: in the caller's trace, timed, described, without arguments or secrets."""

from collections.abc import Generator

import pytest

from tests.observe.collector import Collector, collecting
from tests.observe.samples import NOON, a_problem, an_entry
from tests.parts.ports import free_port
from tests.waiting import until
from toolcrib.model import Origin
from toolcrib.observe import CallEntry, Redactor, Sampling, Spans
from toolcrib.observe.otlp import OtlpExporter, OtlpTarget
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I3")]

SERVER, INTERNAL = 2, 1
TRACE = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
PARENT = "00f067aa0ba902b7"
ID = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[Collector]:
    # This machine's own settings are not the test's.
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    with collecting() as running:
        yield running


def exported(collector: Collector, *entries: CallEntry, target: OtlpTarget | None = None) -> Spans:
    """Send these, and return when they have arrived."""
    target = target or OtlpTarget(endpoint=f"{collector.url}/v1/traces")
    spans = Spans(OtlpExporter(target, Redactor(["hunter2-hunter2"])), Sampling())
    spans.take(entries)
    spans.close()
    return spans


def a_traced(face: str = "mcp", **fields: object) -> CallEntry:
    call = a_call(
        a_tool("files:read"),
        id=ID,
        arguments={"path": "an argument nobody may see"},
        caller=a_caller(id="key:desk", context="support", user="ada"),
        origin=Origin(trace_id=TRACE, parent=PARENT, face=face, agent_id="claude"),
    )
    return an_entry(call, **fields)


def test_a_call_is_a_span_under_its_caller(collector: Collector) -> None:
    assert exported(collector, a_traced(seconds=0.25)).dropped == 0
    (span,) = collector.spans
    assert (span.name, span.kind, span.failed) == ("tools/call files:read", SERVER, False)
    # The id is the parent id that upstream servers get.
    assert (span.trace, span.id, span.parent) == (TRACE.replace("-", ""), "8444555555555555", PARENT)
    assert (span.began, span.ended) == (int((NOON - 0.25) * 1e9), int(NOON * 1e9))
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "files:read",
        "gen_ai.agent.id": "claude",
        "mcp.method.name": "tools/call",
        "toolcrib.source": "files",
        "toolcrib.context": "support",
        "toolcrib.caller": "key:desk",
        "toolcrib.face": "mcp",
        "toolcrib.call_id": ID,
        "toolcrib.cached": False,
        "user.id": "ada",
    }
    assert span.resource["service.name"] == "toolcrib"


@pytest.mark.parametrize(
    "local, method",
    [
        ("resources/read", "resources/read"),
        ("prompts/get", "prompts/get"),
        ("prompts/complete", "completion/complete"),
    ],
)
def test_span_without_tool_has_method_name(collector: Collector, local: str, method: str) -> None:
    exported(collector, a_traced(tool=a_tool(f"files:{local}", family="mcp")))
    (span,) = collector.spans
    assert (span.name, span.attributes["mcp.method.name"]) == (f"{method} files", method)
    assert not any(name.startswith("gen_ai.tool") for name in span.attributes)


def test_elicitation_time_is_part_of_the_span(collector: Collector) -> None:
    exported(collector, a_traced(seconds=0.25, waited=8.0))
    (span,) = collector.spans
    assert (span.began, span.ended) == (int((NOON - 8.25) * 1e9), int(NOON * 1e9))


def test_span_error_has_code_only(collector: Collector) -> None:
    exported(collector, a_traced("rest", problem=a_problem("TIMEOUT"), cached=True))
    (span,) = collector.spans
    assert span.failed
    assert span.attributes["error.type"] == "TIMEOUT"
    assert "it went wrong" not in str(span)
    assert "mcp.method.name" not in span.attributes
    assert span.attributes["toolcrib.cached"] is True


def test_new_trace_has_no_parent(collector: Collector) -> None:
    exported(collector, a_traced("library", origin=Origin(trace_id=TRACE)))
    (span,) = collector.spans
    assert (span.kind, span.parent, span.trace) == (INTERNAL, "", TRACE.replace("-", ""))


def test_span_outside_a_known_trace_is_left_out(collector: Collector) -> None:
    spans = exported(collector, a_traced(origin=Origin(trace_id="mine")), a_traced(origin=Origin()))
    assert (collector.requests, spans.dropped) == ([], 0)


def test_spans_contain_no_secrets(collector: Collector) -> None:
    entry = a_traced(caller=a_caller(id="key:hunter2-hunter2", user="ada"))
    exported(collector, entry, a_traced())
    first, second = collector.spans
    assert "hunter2" not in str(first)
    assert (first.attributes["user.id"], second.attributes["toolcrib.caller"]) == ("ada", "key:desk")
    assert "argument nobody" not in str(collector.requests)


def test_otlp_headers_and_resource_name_are_configured(collector: Collector) -> None:
    target = OtlpTarget(
        endpoint=f"{collector.url}/elsewhere", headers={"X-Key": "open sesame"}, service_name="front desk"
    )
    exported(collector, a_traced(), target=target)
    (request,) = collector.requests
    assert (request.path, request.headers["x-key"]) == ("/elsewhere", "open sesame")
    assert request.headers["content-type"] == "application/x-protobuf"
    assert request.spans[0].resource["service.name"] == "front desk"


def test_otlp_settings_fall_back_to_environment(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "by environment")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=from%20there")
    exported(collector, a_traced())
    (request,) = collector.requests
    resource = request.spans[0].resource
    assert request.headers["x-key"] == "from there"
    assert (resource["service.name"], resource["deployment.environment"]) == ("by environment", "test")


@pytest.mark.parametrize("gone", [False, True])
async def test_collector_failure_is_logged_and_counted(
    collector: Collector, gone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 403
    endpoint = f"http://127.0.0.1:{free_port()}/v1/traces" if gone else f"{collector.url}/v1/traces"
    spans = Spans(OtlpExporter(OtlpTarget(endpoint=endpoint), Redactor()), Sampling())
    spans.take([a_traced()])
    if not gone:
        await until(lambda: spans.dropped == 1)
        spans.take([a_traced()])
        await until(lambda: spans.dropped == 2)
    spans.close(timeout=0.01)
    await until(lambda: spans.dropped >= 1)
    await until(lambda: bool(caplog.messages))
    (said,) = caplog.messages
    assert said.startswith("Spans ")
    # The exporter may be shut down before it retries, and logs that instead.
    assert any(why in said for why in (("refused", "shutdown") if gone else ("403",)))
