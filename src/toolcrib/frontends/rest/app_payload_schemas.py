"""JSON Schemas of the payloads about apps, users and devices."""

from typing import get_args

from toolcrib.admin.app_admin import MAX_DATA_KEY_CHARS, MAX_DATA_VALUE_CHARS
from toolcrib.admin.user_admin import LANGUAGE
from toolcrib.apps.definition import (
    APP_TOOL_CATEGORIES,
    MAX_APP_NAME_CHARS,
    MAX_APP_PERMISSIONS,
    MAX_APP_URL_CHARS,
    MAX_HARDWARE_REQUIREMENTS,
    MAX_TOOLS_PER_APP,
)
from toolcrib.apps.errors import VISIBLE_LINE
from toolcrib.apps.hardware import CAPABILITY_FLAGS, MAX_MODEL_CHARS
from toolcrib.apps.properties import MAX_DESCRIPTION_BYTES
from toolcrib.frontends.rest.fields import (
    COUNT,
    FIELD,
    FLAG,
    MAX_FIELD_CHARACTERS,
    OBJECT,
    OBJECT_OR_NULL,
    OBJECTS,
    PRINTABLE,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    TIMESTAMP,
    USER,
    Schema,
    list_of,
    object_of,
    only_of,
    or_null,
    ref,
    text_of,
)
from toolcrib.interfaces import AppType

# --- JSON Schema of a device's capabilities ---

_MODEL = text_of(MAX_MODEL_CHARS, VISIBLE_LINE)
_CAPABILITIES = object_of(
    modelName={"anyOf": [{"const": ""}, _MODEL]},
    **dict.fromkeys(CAPABILITY_FLAGS.values(), FLAG),
    **dict.fromkeys(map(str.lower, CAPABILITY_FLAGS), OBJECT_OR_NULL),
)
DEVICE: Schema = {
    "anyOf": [_MODEL, _CAPABILITIES, {"type": "null"}],
    "description": "a model name, or capabilities; a described one, such as `camera`, requires `hasCamera`",
}


# --- JSON Schemas of the request and response bodies of the app and user routes ---

MAX_UTTERANCE_CHARACTERS = 10_000
"""Maximum characters of one utterance."""

PACKAGE = text_of(63, r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)+")
"""A package name: a reversed domain name."""
_RETURNED_ONCE: Schema = {"type": "string", "description": "returned only once"}
_CAPITAL_WORD = text_of(50, "[A-Z][A-Z0-9_]*")
_REQUIREMENT = only_of(
    {"type": _CAPITAL_WORD, "level": {"enum": ["REQUIRED", "OPTIONAL"]}},
    description={
        "type": ["string", "null"],
        "maxLength": 500,
        "anyOf": [{"const": ""}, {"pattern": f"^{VISIBLE_LINE}$"}, {"type": "null"}],
    },
)
_LANGUAGE_TAG = or_null(
    text_of(MAX_FIELD_CHARACTERS, LANGUAGE, description="a language tag, such as en or de-CH")
)
_TIME_ZONE = or_null(
    text_of(
        MAX_FIELD_CHARACTERS,
        format="time-zone",
        description="a name of the IANA time zone database, such as Europe/Berlin",
    )
)
_VALUE = text_of(MAX_DATA_VALUE_CHARS, min_length=0)
_APP_TYPE: Schema = {"enum": list(get_args(AppType))}

_APP = object_of(
    {
        "packageName": TEXT,
        "name": TEXT,
        "appType": _APP_TYPE,
        "hardwareRequirements": list_of(ref("Requirement")),
        "permissions": TEXTS,
        "version": {**COUNT, "description": "incremented with every change"},
        "tools": {**TEXTS, "description": "names of its tools"},
    },
    owner={
        "type": "string",
        "description": "the key that created it; this and the following fields only for its owner",
    },
    publicUrl=TEXT_OR_NULL,
    created=TIMESTAMP,
    updated=TIMESTAMP,
    warnings={**TEXTS, "description": "warnings about its definition"},
    apiKey={"type": "string", "description": "returned only once, for a new app"},
)

_NEW_APP = only_of(
    {"name": text_of(MAX_APP_NAME_CHARS, VISIBLE_LINE)},
    publicUrl=or_null(
        text_of(
            MAX_APP_URL_CHARS,
            "[Hh][Tt][Tt][Pp][Ss]?://[^?#@]+",
            format="uri",
            description="base URL of its webhook and its tools",
        )
    ),
    appType=_APP_TYPE,
    hardwareRequirements={**list_of(ref("Requirement")), "maxItems": MAX_HARDWARE_REQUIREMENTS},
    permissions={**list_of(_CAPITAL_WORD), "maxItems": MAX_APP_PERMISSIONS},
)

_NEW_TOOL = object_of(
    {
        "name": text_of(256, "[^:]+"),
        "description": text_of(MAX_DESCRIPTION_BYTES),
        "inputSchema": object_of({"type": {"const": "object"}}, properties=OBJECT, required=TEXTS),
    },
    mentraExtensions=only_of(
        activationPhrases={"type": ["array", "object"]}, category={"enum": list(APP_TOOL_CATEGORIES)}
    ),
)

_RUNNING = object_of(
    {"state": {"enum": ["connecting", "running", "grace_period", "resurrecting", "stopping", "stopped"]}},
    since=TIMESTAMP,
    foreground=FLAG,
    activated={"type": "boolean", "description": "whether a tool call started it"},
    error=TEXT_OR_NULL,
)

_INSTALLED = object_of(
    {
        "packageName": TEXT,
        "name": TEXT,
        "installedAt": TIMESTAMP,
        "settings": OBJECT,
        "disabled": FLAG,
        "compatibility": object_of(
            {
                "isCompatible": FLAG,
                "missingRequired": list_of(ref("Requirement")),
                "missingOptional": list_of(ref("Requirement")),
                "warnings": TEXTS,
                "message": TEXT,
            }
        ),
        "running": ref("Running"),
    },
    appType={"enum": [*get_args(AppType), None]},
)

_SESSION = object_of(
    {
        "sessionId": TEXT,
        "userId": TEXT,
        "device": {**OBJECT_OR_NULL, "description": "its capabilities; null if no device is connected"},
        "language": TEXT_OR_NULL,
        "timeZone": TEXT_OR_NULL,
        "startedAt": TIMESTAMP,
    }
)

_USER = object_of(
    {
        "id": TEXT,
        "language": TEXT_OR_NULL,
        "timeZone": TEXT_OR_NULL,
        "created": TIMESTAMP,
        "apps": list_of(ref("Installed")),
        "disabled": {**TEXTS, "description": "disabled tools, and packages of disabled apps"},
        "session": {"anyOf": [ref("Session"), {"type": "null"}]},
        "device": {"anyOf": [object_of({"model": TEXT, "has": TEXTS}), {"type": "null"}]},
        "usage": {"type": "string", "description": "URL of the user's usage"},
    }
)

_LISTED_USER = object_of(
    {
        "id": TEXT,
        "language": TEXT_OR_NULL,
        "timeZone": TEXT_OR_NULL,
        "created": TIMESTAMP,
        "apps": {**TEXTS, "description": "packages"},
        "active": {"type": "boolean", "description": "whether the user has a session"},
    }
)

_LEGACY_TOOL = object_of(
    {"id": TEXT, "description": TEXT},
    activationPhrases=TEXTS,
    parameters={"type": "object", "additionalProperties": OBJECT},
    appPackageName=TEXT,
)

APP_SCHEMAS: dict[str, Schema] = {
    "Requirement": _REQUIREMENT,
    "App": _APP,
    "Apps": object_of({"apps": list_of(ref("App"))}),
    "NewApp": _NEW_APP,
    "Removed": object_of({"removed": FLAG}, packageName=TEXT, id=TEXT),
    "AppKey": object_of({"packageName": TEXT, "apiKey": _RETURNED_ONCE}),
    "NewTool": _NEW_TOOL,
    "NewTools": only_of(
        {
            "tools": {
                **list_of(ref("NewTool")),
                "maxItems": MAX_TOOLS_PER_APP,
                "description": "all tools of the app",
            }
        }
    ),
    "StoredTools": object_of({"packageName": TEXT, "version": COUNT, "tools": TEXTS, "warnings": TEXTS}),
    "AppTools": object_of({"packageName": TEXT, "version": COUNT, "tools": OBJECTS}),
    "Running": _RUNNING,
    "Installed": _INSTALLED,
    "NewInstall": only_of(settings=OBJECT_OR_NULL),
    "Started": {"allOf": [object_of({"packageName": TEXT}, stopped=FLAG), ref("Running")]},
    "Session": _SESSION,
    "NewSession": only_of(device=DEVICE, language=_LANGUAGE_TAG, timeZone=_TIME_ZONE),
    "Ended": object_of({"sessionId": TEXT, "ended": FLAG}),
    "User": _USER,
    "Users": object_of({"users": list_of(_LISTED_USER)}),
    "NewUser": only_of(language=_LANGUAGE_TAG, timeZone=_TIME_ZONE),
    "Switched": object_of({"name": TEXT, "disabled": FLAG}),
    "Transcription": only_of(
        {"text": text_of(MAX_UTTERANCE_CHARACTERS, min_length=0)}, isFinal=FLAG, language=_LANGUAGE_TAG
    ),
    "Delivered": object_of({"delivered": COUNT}),
    "Kept": object_of({"success": FLAG, "data": {"type": "object", "additionalProperties": TEXT}}),
    "KeptValue": object_of({"success": FLAG, "data": TEXT}),
    "Keep": only_of(
        {
            "data": {
                "type": "object",
                "propertyNames": text_of(MAX_DATA_KEY_CHARS, PRINTABLE),
                "additionalProperties": _VALUE,
            }
        }
    ),
    "KeepValue": only_of({"value": _VALUE}),
    "Done": object_of({"success": FLAG}),
    "OldTools": list_of(_LEGACY_TOOL),
    "OldCall": object_of({"toolId": FIELD}, toolParameters=OBJECT_OR_NULL, userId=or_null(USER)),
    "OldAnswer": object_of(
        {"status": {"enum": ["success", "error"]}}, reply={"description": "the tool's reply"}, message=TEXT
    ),
}
