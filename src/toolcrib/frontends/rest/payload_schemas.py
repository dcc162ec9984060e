"""JSON Schemas of REST payloads."""

from typing import get_args

from toolcrib.admin.key_admin import END_OF_TIME, MAX_NAME_LENGTH, MAX_OVERLAP_SECONDS, RESERVED_NAMES
from toolcrib.errors import CODES
from toolcrib.formats import PROVIDERS
from toolcrib.frontends.rest.app_payload_schemas import APP_SCHEMAS
from toolcrib.frontends.rest.fields import (
    COUNT,
    DETAILS,
    FIELD,
    FIELD_OR_NULL,
    FLAG,
    MAX_FIELD_CHARACTERS,
    NUMBER,
    NUMBER_OR_NULL,
    OBJECT,
    OBJECT_OR_NULL,
    OBJECTS,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    TIMESTAMP,
    USER,
    Schema,
    list_of,
    map_of,
    object_of,
    only_of,
    or_null,
    ref,
    text_of,
)
from toolcrib.hints.field_table import schema as hints_schema
from toolcrib.interfaces import State
from toolcrib.model import ActorKind, HintSetting, Kind

# --- JSON Schemas of the request and response bodies of the key routes ---

KEY_NAME: Schema = {**text_of(MAX_NAME_LENGTH, r"[\p{L}\p{N}._-]+"), "not": {"enum": sorted(RESERVED_NAMES)}}
_PERMISSION = text_of(MAX_FIELD_CHARACTERS, r"(\*|([^*:]|[^:]{2,}):[^:]+)")
_EXPIRES: Schema = {
    "anyOf": [
        {"type": "number", "minimum": 0, "exclusiveMaximum": END_OF_TIME},
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date-time"},
        {"type": "null"},
    ],
    "description": "in the future: seconds since 1970, or ISO 8601",
}

_KEY = object_of(
    {
        "name": TEXT,
        "permissions": TEXTS,
        "contexts": {"type": ["array", "null"], "items": TEXT, "description": "null means every context"},
        "home": TEXT,
        "actAs": FLAG,
        "created": NUMBER,
    },
    user={**TEXT_OR_NULL, "description": "the user whose key it is"},
    createdBy={**TEXT_OR_NULL, "description": "the actor that created it, such as admin or key:NAME"},
    expires={**NUMBER_OR_NULL, "description": "expiry, in seconds since 1970"},
    rotated=NUMBER_OR_NULL,
    previousUntil={**NUMBER_OR_NULL, "description": "when the previous secret expires"},
    revoked=NUMBER_OR_NULL,
    lastUsed={**NUMBER_OR_NULL, "description": "last successful authentication, to the minute"},
)

KEY_SCHEMAS: dict[str, Schema] = {
    "Key": _KEY,
    "Keys": object_of(
        {"keys": list_of(ref("Key"))},
        next={**TEXT, "description": "value of `after` for the next page; absent on the last page"},
    ),
    "NewKey": only_of(
        {"name": KEY_NAME},
        permissions={"type": ["array", "null"], "maxItems": MAX_FIELD_CHARACTERS, "items": _PERMISSION},
        contexts={"type": ["array", "null"], "minItems": 1, "maxItems": MAX_FIELD_CHARACTERS, "items": FIELD},
        home={**FIELD_OR_NULL, "description": "one of `contexts`, if given"},
        actAs=FLAG,
        user={**or_null(USER), "description": "the user whose key it becomes"},
        expires=_EXPIRES,
    ),
    "Rotation": only_of(
        overlapSeconds={
            **NUMBER_OR_NULL,
            "minimum": 0,
            "maximum": MAX_OVERLAP_SECONDS,
            "description": "how long the old secret stays valid; default 0",
        }
    ),
    "MadeKey": {
        "allOf": [ref("Key"), object_of({"key": {"type": "string", "description": "returned only once"}})]
    },
}


# --- JSON Schemas of request and response bodies: the components that the OpenAPI description refers to ---

_METADATA = object_of(
    {
        "toolVersion": TEXT,
        "timestamp": {"type": "string", "format": "date-time"},
        "executionTime": {"type": "number", "description": "milliseconds"},
        "serviceVersion": TEXT,
        "traceId": {"type": "string", "format": "uuid"},
        "correlationId": {"type": "string", "format": "uuid"},
        "cached": FLAG,
    }
)

_ERROR = object_of(
    {
        "code": ref("Code"),
        "kind": {"enum": [str(kind) for kind in Kind]},
        "class": {"enum": ["validation", "business", "system"]},
        "message": TEXT,
        "retryable": FLAG,
    },
    retryAfter={"type": "number", "description": "seconds to wait before calling again"},
    path={"type": "string", "description": "path of the fault in the request"},
    toolCode={"type": "string", "description": "the tool's own error code"},
    stage=TEXT,
    details=OBJECT,
)

_RESULT = object_of(
    {
        "success": FLAG,
        "status": {"enum": ["success", "error"]},
        "content": {"description": "content for the model: text, blocks, or the data itself"},
        "message": {"type": "string", "description": "a sentence for a voice assistant"},
        "agentHints": ref("Hints"),
        "metadata": ref("Metadata"),
        "mentraExtensions": object_of(suppressVoiceResponse=FLAG, suggestedFollowUps=TEXTS),
    },
    data={"description": "the raw result; absent if the call failed or requires input"},
    error=ref("Error"),
    inputRequired=object_of(
        {
            "questions": map_of(
                object_of({"method": TEXT}, params=OBJECT), "by name; answers are sent under the same names"
            ),
            "state": {"type": "string", "description": "to be returned with the answers"},
        }
    ),
)

_HINT_PARTS = hints_schema()["properties"]
_BRIEF_RESULT = object_of(
    {name: _RESULT["properties"][name] for name in ("success", "status", "message")},
    **{name: _RESULT["properties"][name] for name in ("data", "error", "inputRequired")},
    agentHints={
        **object_of(
            **{name: _HINT_PARTS[name] for name in ("suggestedNextActions", "warnings", "contextNeeded")}
        ),
        "description": "only what can be acted on; absent if there is nothing",
    },
)

_TOOL = object_of(
    {"name": TEXT, "description": TEXT, "inputSchema": {"type": "object"}},
    outputSchema=OBJECT,
    title=TEXT,
    source=TEXT,
    category={"enum": ["query", "mutation", "analysis", "generation"]},
    responseTime={"enum": ["fast", "medium", "slow"]},
    version=TEXT,
    permissions=TEXTS,
    tags=TEXTS,
    examples=OBJECTS,
    degraded={"type": "boolean", "description": "its source is down; absent otherwise"},
    names=object_of(qualified=TEXT, safe=TEXT, flat=TEXT),
)

_TOOLS = object_of(
    {
        "tools": list_of(
            {"anyOf": [ref("Tool"), {"type": "object", "description": "in the requested format"}]}
        ),
        "total": {**COUNT, "description": "number of tools, listed or not"},
    },
    cut={**COUNT, "description": "number of tools over the provider's limit; absent if none"},
    withheld={
        **list_of(object_of({"name": TEXT, "reason": TEXT})),
        "description": "tools that the format cannot declare; absent if none",
    },
    warnings=TEXTS,
)

_IDEMPOTENCY_KEY: Schema = {
    "type": ["string", "null"],
    "pattern": "^[!-~]{1,255}$",
    "description": "idempotency key: a repeated request with the same key is executed once",
}

_ANSWER = only_of(
    {"message": {"type": "object", "description": "the provider's message"}},
    format={
        "enum": [*PROVIDERS, None],
        "description": "the provider's format; default: the context's provider",
    },
    context=FIELD_OR_NULL,
    idempotencyKey=_IDEMPOTENCY_KEY,
)

_ANSWERS = object_of(
    {
        "messages": {**OBJECTS, "description": "messages to send to the provider unchanged"},
        "suppressVoiceResponse": {
            "type": "boolean",
            "description": "whether the assistant should stay silent",
        },
        "suggestedFollowUps": TEXTS,
    }
)

_CALL = object_of(
    {
        "id": TEXT,
        "at": TIMESTAMP,
        "tool": TEXT,
        "caller": TEXT,
        "outcome": {"enum": ["success", "error", "timeout"]},
        "milliseconds": NUMBER,
    },
    user=TEXT_OR_NULL,
    context=TEXT,
    face=TEXT,
    code=TEXT_OR_NULL,
    cached=FLAG,
    traceId=TEXT,
)

_USAGE = object_of(
    {
        "calls": COUNT,
        "errors": COUNT,
        "cached": COUNT,
        "p50": {"type": "number", "description": "milliseconds"},
        "p95": {"type": "number", "description": "milliseconds"},
        "lastUsed": TIMESTAMP,
    }
)

_SERVER = object_of(
    {
        "enabled": FLAG,
        "transport": {"enum": ["stdio", "http", "sse"]},
        "state": {"enum": list(get_args(State))},
        "up": FLAG,
        "last_error": TEXT_OR_NULL,
        "restarts": COUNT,
        "discovered_tools": {**TEXTS, "description": "names on the server"},
        "registered_tools": {**TEXTS, "description": "exposed names"},
        "withheld_tools": map_of(TEXT, "withheld tools and the reasons"),
        "stderr_tail": {**TEXTS, "description": "the last lines of its standard error, without secrets"},
    },
    added={"type": "boolean", "description": "whether it was added at run time"},
    pin={"enum": ["strict", "notify", "off"], "description": "reaction to a changed tool definition"},
    breaker={"enum": ["closed", "open", "half_open"], "description": "state of the circuit breaker"},
    shadowed_tools=map_of(TEXT, "tools whose flat name belongs to another tool, and that tool"),
    changed_tools={**TEXTS, "description": "tools whose definition differs from the trusted one"},
    definition_changes={**COUNT, "description": "definition changes since the start"},
    degraded={"type": "boolean", "description": "its tools are listed, but cannot be called now"},
    details=OBJECT,
)

_PLAN = object_of(
    {
        "added": {**TEXTS, "description": "ids of servers"},
        "removed": TEXTS,
        "changed": TEXTS,
        "untouched": TEXTS,
        "deferred": map_of(TEXTS, "servers that stop after their running calls, with the ids of those calls"),
        "applied": {**TEXTS, "description": "other config sections that were applied"},
        "restart": {**TEXTS, "description": "sections that take effect after a restart of the gateway"},
        "warnings": TEXTS,
    },
    dry_run={"type": "boolean", "description": "nothing was changed"},
)

_AUDIT_RECORD = object_of(
    {
        "number": COUNT,
        "at": TIMESTAMP,
        "actor": object_of({"kind": {"enum": list(get_args(ActorKind))}, "name": TEXT, "user": TEXT_OR_NULL}),
        "origin": object_of({"frontend": TEXT, "address": TEXT, "process": TEXT}),
        "action": TEXT,
        "target": TEXT,
        "before": {"description": "the value before, without secrets"},
        "after": {"description": "the value after, without secrets"},
        "outcome": {"type": "string", "description": "success, or the code of the error"},
        "previous": {"type": "string", "description": "hash of the previous record"},
        "hash": {
            "type": "string",
            "description": "sha256 over the record without this field, as canonical JSON",
        },
    }
)

_PIN = object_of(
    {
        "name": TEXT,
        "trusted": {"type": "string", "description": "hash of the trusted definition"},
        "seal": {"type": "string", "description": "hash of the current definition"},
        "mode": {"enum": ["strict", "notify", "off"]},
    }
)

_JSON_TEXT: Schema = {"type": "string", "contentMediaType": "application/json", "contentSchema": OBJECT}

SCHEMAS: dict[str, Schema] = {
    "Code": {
        "enum": list(CODES),
        "description": "\n".join(f"* `{code}`: {row.status}, {row.kind}" for code, row in CODES.items()),
    },
    "Error": _ERROR,
    "Hints": hints_schema(),
    "Metadata": _METADATA,
    "Result": _RESULT,
    "BriefResult": _BRIEF_RESULT,
    "ExecuteResult": {"anyOf": [ref("Result"), ref("BriefResult")]},
    "Tool": _TOOL,
    "Tools": _TOOLS,
    "Answer": _ANSWER,
    "Answers": _ANSWERS,
    "Execute": only_of(
        {"name": {"type": "string", "description": "any name of the tool", "minLength": 1}},
        arguments={
            "anyOf": [OBJECT_OR_NULL, _JSON_TEXT],
            "description": "an object, or a JSON string of one",
        },
        context=FIELD_OR_NULL,
        idempotencyKey=_IDEMPOTENCY_KEY,
        capabilities={
            "type": ["object", "null"],
            "additionalProperties": OBJECT,
            "description": "client capabilities as in MCP: elicitation, sampling, roots",
        },
        answers={"type": ["object", "null"], "description": "answers to the questions of `inputRequired`"},
        state={"type": ["string", "null"], "description": "the state from `inputRequired`"},
        detail={
            "enum": [*DETAILS, None],
            "description": "brief: only the outcome, the message, data or error, and hints to act on",
        },
    ),
    "AuditRecord": _AUDIT_RECORD,
    "AuditRecords": object_of({"records": list_of(ref("AuditRecord"))}),
    "Call": _CALL,
    "Calls": object_of({"calls": list_of(ref("Call"))}),
    "Usage": object_of({"tools": {"type": "object", "additionalProperties": _USAGE}}),
    "Explanation": object_of(
        {"name": TEXT, "visible": FLAG, "reason": TEXT_OR_NULL},
        cut={**TEXT_OR_NULL, "description": "why it is not listed although it may be used"},
        hints={"enum": list(get_args(HintSetting)), "description": "hints that models of the context see"},
        declarationTokens={**COUNT, "description": "estimated tokens of its declaration for models"},
    ),
    "Status": object_of({"service": TEXT, "version": TEXT, "tools": COUNT, "sources": OBJECTS}),
    "Revoked": object_of({"name": TEXT, "revoked": FLAG}),
    "Server": _SERVER,
    "Servers": object_of(
        {
            "enabled": FLAG,
            "servers": {"type": "object", "additionalProperties": ref("Server")},
            "tool_routes": map_of(
                object_of({"server": TEXT, "tool": TEXT}), "the tool behind each exposed name"
            ),
        }
    ),
    "Tested": object_of(
        {
            "ok": FLAG,
            "tools": TEXTS,
            "changed_tools": {**TEXTS, "description": "tools whose definition differs from the trusted one"},
            "latency_ms": {**NUMBER, "minimum": 0},
        },
        error=TEXT,
    ),
    "Plan": _PLAN,
    "Pin": _PIN,
    "Pins": object_of({"pins": list_of(ref("Pin"))}),
    "NewPin": only_of(
        {"name": {**FIELD, "description": "any name of the tool"}},
        seal={**FIELD_OR_NULL, "description": "approve only if the current hash is this one"},
    ),
    "Approved": object_of({"name": TEXT, "seal": TEXT}),
    "Health": object_of({"status": {"const": "ok"}}),
    "Ready": object_of({"ready": {"const": True}}),
    "Link": object_of({"url": {"type": "string", "format": "uri"}}),
    "LinkToken": only_of({"token": {"type": "string", "description": "the part of a link after #token="}}),
    "SignedIn": object_of(
        {"secret": {"type": "string", "description": "for the header X-Crib-Token; returned only once"}}
    ),
    "SignedOut": object_of({"signedOut": FLAG}),
    **KEY_SCHEMAS,
    **APP_SCHEMAS,
}
