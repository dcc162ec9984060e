"""What goes in and out of the routes, as JSON Schema: the parts that the description of the API refers to."""

from typing import Any, get_args

from toolcrib.errors import CODES
from toolcrib.hints.schema import schema as hints_schema
from toolcrib.interfaces import State
from toolcrib.model import Kind

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    """Point to one of the shapes."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: tuple[str, ...] = (), /, **properties: Any) -> Schema:
    shape: Schema = {"type": "object", "properties": properties}
    return {**shape, "required": list(required)} if required else shape


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": "number"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
ANYTHING: Schema = {}
OBJECTS = _list({"type": "object"})
TEXTS = _list(TEXT)

_METADATA = _object(
    ("toolVersion", "timestamp", "executionTime", "serviceVersion", "traceId", "correlationId", "cached"),
    toolVersion=TEXT,
    timestamp={"type": "string", "format": "date-time"},
    executionTime={"type": "number", "description": "milliseconds"},
    serviceVersion=TEXT,
    traceId={"type": "string", "format": "uuid"},
    correlationId={"type": "string", "format": "uuid"},
    cached=FLAG,
)

_ERROR = _object(
    ("code", "kind", "class", "message", "retryable"),
    code=ref("Code"),
    kind={"enum": [str(kind) for kind in Kind]},
    **{"class": {"enum": ["validation", "business", "system"]}},
    message=TEXT,
    retryable=FLAG,
    retryAfter={"type": "number", "description": "seconds to wait before calling again"},
    path={"type": "string", "description": "where in the request the fault is"},
    toolCode={"type": "string", "description": "the code the tool itself gave"},
    stage=TEXT,
    details={"type": "object"},
)

_RESULT = _object(
    ("success", "status", "content", "message", "agentHints", "metadata", "mentraExtensions"),
    success=FLAG,
    status={"enum": ["success", "error"]},
    content={"description": "what the model reads: text, blocks, or the data itself"},
    message={"type": "string", "description": "a sentence that can be spoken"},
    data={"description": "the raw answer; absent where the call failed or asks"},
    agentHints=ref("Hints"),
    metadata=ref("Metadata"),
    mentraExtensions=_object(suppressVoiceResponse=FLAG, suggestedFollowUps=TEXTS),
    error=ref("Error"),
    inputRequired=_object(
        ("questions", "state"),
        questions={
            "type": "object",
            "additionalProperties": _object(("method",), method=TEXT, params={"type": "object"}),
            "description": "by the names to answer them under",
        },
        state={"type": "string", "description": "to be sent back with the answers"},
    ),
)

_TOOL = _object(
    ("name", "description", "inputSchema"),
    name=TEXT,
    description=TEXT,
    inputSchema={"type": "object"},
    outputSchema={"type": "object"},
    title=TEXT,
    source=TEXT,
    category={"enum": ["query", "mutation", "analysis", "generation"]},
    responseTime={"enum": ["fast", "medium", "slow"]},
    version=TEXT,
    permissions=TEXTS,
    tags=TEXTS,
    examples=OBJECTS,
    degraded={"type": "boolean", "description": "its source is down; absent where it is not"},
    names=_object(qualified=TEXT, safe=TEXT, flat=TEXT),
)

_CALL = _object(
    ("id", "at", "tool", "caller", "outcome", "milliseconds"),
    id=TEXT,
    at={"type": "number", "description": "seconds since 1970"},
    tool=TEXT,
    caller=TEXT,
    user=TEXT_OR_NULL,
    context=TEXT,
    face=TEXT,
    outcome={"enum": ["success", "error", "timeout"]},
    code=TEXT_OR_NULL,
    milliseconds=NUMBER,
    cached=FLAG,
    traceId=TEXT,
)

_USED = _object(
    ("calls", "errors", "cached", "p50", "p95", "lastUsed"),
    calls=COUNT,
    errors=COUNT,
    cached=COUNT,
    p50={"type": "number", "description": "milliseconds"},
    p95={"type": "number", "description": "milliseconds"},
    lastUsed={"type": "number", "description": "seconds since 1970"},
)

_KEY = _object(
    ("name", "permissions", "contexts", "home", "actAs", "created"),
    name=TEXT,
    permissions=TEXTS,
    contexts={"type": ["array", "null"], "items": TEXT, "description": "null reaches every context"},
    home=TEXT,
    actAs=FLAG,
    created=NUMBER,
    rotated=NUMBER_OR_NULL,
    revoked=NUMBER_OR_NULL,
)

_SERVER = _object(
    (
        "enabled",
        "transport",
        "state",
        "up",
        "last_error",
        "restarts",
        "discovered_tools",
        "registered_tools",
        "withheld_tools",
        "stderr_tail",
    ),
    enabled=FLAG,
    transport={"enum": ["stdio", "http", "sse"]},
    added={"type": "boolean", "description": "added at run time"},
    state={"enum": list(get_args(State))},
    up=FLAG,
    last_error=TEXT_OR_NULL,
    restarts=COUNT,
    breaker={"enum": ["closed", "open", "half_open"], "description": "whether calls are let through"},
    discovered_tools={**TEXTS, "description": "as the server names them"},
    registered_tools={**TEXTS, "description": "as they are exposed"},
    withheld_tools={"type": "object", "additionalProperties": TEXT, "description": "and why"},
    changed_tools={**TEXTS, "description": "those whose definition is not the trusted one"},
    degraded={"type": "boolean", "description": "its tools are listed and cannot be called now"},
    stderr_tail={**TEXTS, "description": "the last lines it wrote, without secrets"},
    details={"type": "object"},
)

_PLAN = _object(
    ("added", "removed", "changed", "untouched", "deferred", "applied", "restart", "warnings"),
    added={**TEXTS, "description": "ids of servers"},
    removed=TEXTS,
    changed=TEXTS,
    untouched=TEXTS,
    deferred={
        "type": "object",
        "additionalProperties": TEXTS,
        "description": "servers that stop only when calls end, and the ids of those calls",
    },
    applied={**TEXTS, "description": "other sections of the config that are in force now"},
    restart={**TEXTS, "description": "sections that take effect when the gateway is started again"},
    warnings=TEXTS,
    dry_run={"type": "boolean", "description": "nothing was changed"},
)

_PIN = _object(
    ("name", "trusted", "seal", "mode"),
    name=TEXT,
    trusted={"type": "string", "description": "hash of the definition that was trusted"},
    seal={"type": "string", "description": "hash of the definition as it is now"},
    mode={"enum": ["strict", "notify", "off"]},
)

SHAPES: dict[str, Schema] = {
    "Code": {
        "enum": list(CODES),
        "description": "\n".join(f"* `{code}`: {row.status}, {row.kind}" for code, row in CODES.items()),
    },
    "Error": _ERROR,
    "Hints": hints_schema(),
    "Metadata": _METADATA,
    "Result": _RESULT,
    "Tool": _TOOL,
    "Tools": _object(("tools", "total"), tools=_list(ref("Tool")), total=COUNT),
    "Execute": {
        **_object(
            ("name",),
            name={"type": "string", "description": "any name of the tool", "minLength": 1},
            arguments={"type": ["object", "string", "null"], "description": "or a JSON text of an object"},
            context=TEXT_OR_NULL,
            idempotencyKey={
                "type": ["string", "null"],
                "pattern": "^[!-~]{1,255}$",
                "description": "what the caller knows this request by: made twice, it is carried out once",
            },
            capabilities={
                "type": ["object", "null"],
                "additionalProperties": {"type": "object"},
                "description": "what the caller can be asked: elicitation, sampling, roots, as in MCP",
            },
            answers={"type": ["object", "null"], "description": "to the questions of `inputRequired`"},
            state={"type": ["string", "null"], "description": "as `inputRequired` gave it"},
        ),
        "additionalProperties": False,
    },
    "Call": _CALL,
    "Calls": _object(("calls",), calls=_list(ref("Call"))),
    "Usage": _object(("tools",), tools={"type": "object", "additionalProperties": _USED}),
    "Explanation": _object(("name", "visible", "reason"), name=TEXT, visible=FLAG, reason=TEXT_OR_NULL),
    "Status": _object(
        ("service", "version", "tools", "sources"), service=TEXT, version=TEXT, tools=COUNT, sources=OBJECTS
    ),
    "Key": _KEY,
    "Keys": _object(("keys",), keys=_list(ref("Key"))),
    "NewKey": {
        **_object(
            ("name",),
            name={"type": "string", "minLength": 1, "maxLength": 64},
            permissions={"type": ["array", "null"], "items": TEXT},
            contexts={"type": ["array", "null"], "items": TEXT},
            home=TEXT_OR_NULL,
            actAs=FLAG,
        ),
        "additionalProperties": False,
    },
    "MadeKey": {
        "allOf": [ref("Key"), _object(("key",), key={"type": "string", "description": "shown this once"})]
    },
    "Revoked": _object(("name", "revoked"), name=TEXT, revoked=FLAG),
    "Server": _SERVER,
    "Servers": _object(
        ("enabled", "servers", "tool_routes"),
        enabled=FLAG,
        servers={"type": "object", "additionalProperties": ref("Server")},
        tool_routes={
            "type": "object",
            "additionalProperties": _object(("server", "tool"), server=TEXT, tool=TEXT),
            "description": "where each exposed name leads",
        },
    ),
    "Tested": _object(
        ("ok", "tools", "latency_ms"), ok=FLAG, tools=TEXTS, error=TEXT, latency_ms={**NUMBER, "minimum": 0}
    ),
    "Plan": _PLAN,
    "Pin": _PIN,
    "Pins": _object(("pins",), pins=_list(ref("Pin"))),
    "NewPin": {
        **_object(
            ("name",),
            name={"type": "string", "description": "any name of the tool", "minLength": 1},
            seal={"type": ["string", "null"], "description": "approve only if it is still this one"},
        ),
        "additionalProperties": False,
    },
    "Approved": _object(("name", "seal"), name=TEXT, seal=TEXT),
    "Health": _object(("status",), status={"const": "ok"}),
    "Ready": _object(("ready",), ready={"const": True}),
    "Link": _object(("url",), url={"type": "string", "format": "uri"}),
    "SignedOut": _object(("signedOut",), signedOut=FLAG),
}
