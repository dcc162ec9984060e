"""What happened: every call once, for the log, the metrics, the usage counts and the list of calls."""

from toolcrib.observe.calls import RecentCalls
from toolcrib.observe.entry import Entry, Sink
from toolcrib.observe.history import History
from toolcrib.observe.journal import Journal
from toolcrib.observe.log import Log, setup
from toolcrib.observe.metrics import CONTENT_TYPE, Metrics
from toolcrib.observe.redact import MASK, Redactor
from toolcrib.observe.traces import Trace, new_id, new_trace, parse, trace_uuid
from toolcrib.observe.usage import ToolUsage, UsageTally, quantile, summary

__all__ = [
    "CONTENT_TYPE",
    "MASK",
    "Entry",
    "History",
    "Journal",
    "Log",
    "Metrics",
    "RecentCalls",
    "Redactor",
    "Sink",
    "ToolUsage",
    "Trace",
    "UsageTally",
    "new_id",
    "new_trace",
    "parse",
    "quantile",
    "setup",
    "summary",
    "trace_uuid",
]
