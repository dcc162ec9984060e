"""Exports calls as OpenTelemetry spans by OTLP over HTTP; imported only if tracing is configured."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import local
from typing import Final

from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from toolcrib.catalog import PROMPTS_COMPLETE, PSEUDO_TOOL_NAMES, RESOURCES_COMPLETE
from toolcrib.mcp.methods import CALL_TOOL, COMPLETE
from toolcrib.model import Tool
from toolcrib.observe.call_entry import CallEntry
from toolcrib.observe.redact import Redactor
from toolcrib.version import VERSION

SERVICE = "toolcrib"

_NANOSECONDS: Final = 1_000_000_000
_TOOL_ATTRIBUTES = {"gen_ai.operation.name": "execute_tool"}
_COMPLETION_TOOLS = (PROMPTS_COMPLETE, RESOURCES_COMPLETE)
_SCOPE = InstrumentationScope(SERVICE, VERSION)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_UNSET, _ERROR = Status(StatusCode.UNSET), Status(StatusCode.ERROR)


@dataclass(frozen=True, kw_only=True)
class OtlpTarget:
    """The collector; a field that is None is taken from OpenTelemetry's environment variables."""

    endpoint: str = field(repr=False)
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    service_name: str | None = None


class OtlpExporter:
    """Wraps OpenTelemetry's OTLP exporter and feeds it with spans of calls."""

    def __init__(self, target: OtlpTarget, redactor: Redactor) -> None:
        self._exporter = trace_exporter.OTLPSpanExporter(target.endpoint, headers=target.headers)
        self._builder = SpanBuilder(_resource(target.service_name), redactor)
        logging.getLogger(trace_exporter.__name__).addFilter(_MESSAGES)

    def send(self, batch: Sequence[CallEntry]) -> str | None:
        """Deliver a batch; on failure return the first message that the exporter would have logged."""
        spans = [span for entry in batch if (span := self._builder.span(entry)) is not None]
        messages = _MESSAGES.collect()
        if not spans or self._exporter.export(spans) is SpanExportResult.SUCCESS:
            return None
        return next(iter(messages), "the collector rejected them")

    def close(self) -> None:
        """Abort the export in progress and close the connection."""
        self._exporter.shutdown()


class SpanBuilder:
    """Builds spans with the log's fields as OpenTelemetry attributes; never with arguments or results."""

    def __init__(self, resource: Resource, redactor: Redactor) -> None:
        self._resource = resource
        self._redactor = redactor

    def span(self, entry: CallEntry) -> ReadableSpan | None:
        """Return a call as a span; None if its trace id or span id is not hexadecimal."""
        trace, span_id = _hex_number(entry.origin.trace_id), _hex_number(entry.id[-17:])
        if not (trace and span_id):
            return None
        origin, parent = entry.origin, _hex_number(entry.origin.parent)
        parent_context = SpanContext(trace, parent, is_remote=True, trace_flags=_SAMPLED) if parent else None
        # Built directly, as a tracer would generate other ids than those already propagated to servers.
        return ReadableSpan(
            _span_name(entry.tool),
            SpanContext(trace, span_id, is_remote=False, trace_flags=_SAMPLED),
            parent_context,
            self._resource,
            self._attributes(entry),
            kind=SpanKind.INTERNAL if origin.face == "library" else SpanKind.SERVER,
            status=_UNSET if entry.problem is None else _ERROR,
            start_time=int((entry.at - entry.seconds - entry.waited) * _NANOSECONDS),
            end_time=int(entry.at * _NANOSECONDS),
            instrumentation_scope=_SCOPE,
        )

    def _attributes(self, entry: CallEntry) -> dict[str, str | bool]:
        tool, caller, origin, problem = entry.tool, entry.caller, entry.origin, entry.problem
        attributes = {
            **({} if _is_pseudo_tool(tool) else {**_TOOL_ATTRIBUTES, "gen_ai.tool.name": tool.name}),
            "toolcrib.source": tool.source,
            "toolcrib.context": caller.context,
            "toolcrib.caller": caller.id,
            "toolcrib.face": origin.face,
            "gen_ai.agent.id": origin.agent_id,
        }
        if caller.user is not None:
            attributes["user.id"] = caller.user
        if origin.face == "mcp":
            attributes["mcp.method.name"] = _method_name(tool)
        if problem is not None:
            attributes["error.type"] = problem.code
        if not self._redactor.passes(tuple(attributes.values())):
            attributes = {name: self._redactor.text(value) for name, value in attributes.items()}
        return {**attributes, "toolcrib.call_id": entry.id, "toolcrib.cached": entry.cached}


class _MessageCapture(logging.Filter):
    """Captures the exporter's log records in our threads; in the log they would repeat for every batch."""

    def __init__(self) -> None:
        super().__init__()
        self._here = local()

    def collect(self) -> list[str]:
        """Return a new list that collects this thread's messages from now on."""
        self._here.messages = messages = list[str]()
        return messages

    def filter(self, record: logging.LogRecord) -> bool:
        messages: list[str] | None = getattr(self._here, "messages", None)
        if messages is None:
            return True
        messages.append(record.getMessage())
        return False


_MESSAGES = _MessageCapture()


def _resource(service_name: str | None) -> Resource:
    found = Resource.create({SERVICE_NAME: service_name} if service_name else None)
    if not str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return found
    return found.merge(Resource({SERVICE_NAME: SERVICE, SERVICE_VERSION: VERSION}))


def _is_pseudo_tool(tool: Tool) -> bool:
    """Whether this is no tool but a pseudo-tool for a server's resources or prompts."""
    return tool.family == "mcp" and tool.local in PSEUDO_TOOL_NAMES


def _method_name(tool: Tool) -> str:
    if not _is_pseudo_tool(tool):
        return CALL_TOOL
    return COMPLETE if tool.local in _COMPLETION_TOOLS else tool.local


def _span_name(tool: Tool) -> str:
    return f"{_method_name(tool)} {tool.source if _is_pseudo_tool(tool) else tool.name}"


def _hex_number(digits: str) -> int:
    """Parse a hexadecimal id, with or without dashes; 0, which is no valid id, if it is none."""
    try:
        return int(digits.replace("-", ""), 16)
    except ValueError:
        return 0
