"""The seams: a new kind of source, step, rule, format, recorder or store satisfies one of these."""

from toolcrib.interfaces.calls import Format, Handler, Reason, Recorder, Rule, Stage, Step
from toolcrib.interfaces.reload import Plan, Reload, ServerEntry
from toolcrib.interfaces.shared import Change, Demand, Shared
from toolcrib.interfaces.sources import Link, Offer, Source, SourceState, State, Upkeep, Withheld
from toolcrib.interfaces.store import (
    LATENCY_BOUNDS,
    CallRow,
    Calls,
    Claims,
    Definition,
    Definitions,
    KeyRecord,
    Keys,
    Overlay,
    Store,
    Usage,
    UsageRow,
)

__all__ = [
    "LATENCY_BOUNDS",
    "CallRow",
    "Calls",
    "Change",
    "Claims",
    "Definition",
    "Definitions",
    "Demand",
    "Format",
    "Handler",
    "KeyRecord",
    "Keys",
    "Link",
    "Offer",
    "Overlay",
    "Plan",
    "Reason",
    "Recorder",
    "Reload",
    "Rule",
    "ServerEntry",
    "Shared",
    "Source",
    "SourceState",
    "Stage",
    "State",
    "Step",
    "Store",
    "Upkeep",
    "Usage",
    "UsageRow",
    "Withheld",
]
