"""Observability: one record per call, for the log, metrics, traces, usage counts and the call list."""

from toolcrib.observe.audit import Action, Audit
from toolcrib.observe.call_entry import CallEntry, Sink, new_id
from toolcrib.observe.log import Log, setup
from toolcrib.observe.metrics import CONTENT_TYPE, Metrics
from toolcrib.observe.recent_calls import MutationRows, RecentCalls
from toolcrib.observe.recorder import CallRecorder, ToolHistory
from toolcrib.observe.redact import MASK, Redactor
from toolcrib.observe.sequences import Sequences
from toolcrib.observe.spans import INSTALL_COMMAND, Sampling, Spans, installed
from toolcrib.observe.usage_counts import ToolUsage, UsageTally, quantile, summary

__all__ = [
    "CONTENT_TYPE",
    "INSTALL_COMMAND",
    "MASK",
    "Action",
    "Audit",
    "CallEntry",
    "CallRecorder",
    "Log",
    "Metrics",
    "MutationRows",
    "RecentCalls",
    "Redactor",
    "Sampling",
    "Sequences",
    "Sink",
    "Spans",
    "ToolHistory",
    "ToolUsage",
    "UsageTally",
    "installed",
    "new_id",
    "quantile",
    "setup",
    "summary",
]
