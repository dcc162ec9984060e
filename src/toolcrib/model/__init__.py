"""Domain model: immutable values that all layers share; standard library only."""

from toolcrib.model.actor import FILE_WATCH, LIBRARY, SIGNAL, SYSTEM, Actor, ActorKind
from toolcrib.model.call import Call, Origin, Progress, Report
from toolcrib.model.caller import (
    EVERY_CONTEXT,
    NO_CONTEXT,
    OPERATOR,
    TRUST_HEADER,
    AddressGiver,
    Caller,
    Credential,
    permits,
)
from toolcrib.model.channel import Channel, Unanswered
from toolcrib.model.device import HARDWARE, Device, Level, Requirement
from toolcrib.model.hints import Evidence, Hints
from toolcrib.model.json import Json, JsonObject
from toolcrib.model.observed_channel import ObservedChannel
from toolcrib.model.result import REPLAYED, Ask, Kind, Metadata, Problem, Result, Voice
from toolcrib.model.tool import (
    APPS,
    PROMISES,
    Category,
    Deprecation,
    Example,
    Family,
    RateLimit,
    ResponseTime,
    Slow,
    Speech,
    Tool,
    fingerprint,
)

__all__ = [
    "APPS",
    "EVERY_CONTEXT",
    "FILE_WATCH",
    "HARDWARE",
    "LIBRARY",
    "NO_CONTEXT",
    "OPERATOR",
    "PROMISES",
    "REPLAYED",
    "SIGNAL",
    "SYSTEM",
    "TRUST_HEADER",
    "Actor",
    "ActorKind",
    "AddressGiver",
    "Ask",
    "Call",
    "Caller",
    "Category",
    "Channel",
    "Credential",
    "Deprecation",
    "Device",
    "Evidence",
    "Example",
    "Family",
    "Hints",
    "Json",
    "JsonObject",
    "Kind",
    "Level",
    "Metadata",
    "ObservedChannel",
    "Origin",
    "Problem",
    "Progress",
    "RateLimit",
    "Report",
    "Requirement",
    "ResponseTime",
    "Result",
    "Slow",
    "Speech",
    "Tool",
    "Unanswered",
    "Voice",
    "fingerprint",
    "permits",
]
