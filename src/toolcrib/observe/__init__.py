"""What happened: every call once, for the log, the metrics, the usage counts and the list of calls."""

from toolcrib.observe.audit import Action, Audit
from toolcrib.observe.calls import RecentCalls
from toolcrib.observe.entry import Entry, Sink
from toolcrib.observe.history import History
from toolcrib.observe.journal import Journal
from toolcrib.observe.log import Log, setup
from toolcrib.observe.metrics import CONTENT_TYPE, Metrics
from toolcrib.observe.mutations import MutationRows
from toolcrib.observe.redact import MASK, Redactor
from toolcrib.observe.sequences import Sequences
from toolcrib.observe.spans import INSTALL, Sampling, Spans, installed
from toolcrib.observe.traces import new_id
from toolcrib.observe.usage import ToolUsage, UsageTally, quantile, summary

__all__ = [
    "CONTENT_TYPE",
    "INSTALL",
    "MASK",
    "Action",
    "Audit",
    "Entry",
    "History",
    "Journal",
    "Log",
    "Metrics",
    "MutationRows",
    "RecentCalls",
    "Redactor",
    "Sampling",
    "Sequences",
    "Sink",
    "Spans",
    "ToolUsage",
    "UsageTally",
    "installed",
    "new_id",
    "quantile",
    "setup",
    "summary",
]
