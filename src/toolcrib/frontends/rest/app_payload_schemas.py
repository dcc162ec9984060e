"""What goes in and out of the routes of apps and users, as JSON Schema."""

from typing import get_args

from toolcrib.frontends.rest.schema_terms import (
    COUNT,
    FLAG,
    MOMENT,
    OBJECT,
    OBJECT_OR_NULL,
    OBJECTS,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    Schema,
    list_of,
    object_of,
    only_of,
    ref,
)
from toolcrib.interfaces import AppType

_SHOWN_ONCE: Schema = {"type": "string", "description": "shown this once"}
_REQUIREMENT = object_of(
    ("type", "level"), type=TEXT, level={"enum": ["REQUIRED", "OPTIONAL"]}, description=TEXT
)
_APP_TYPE: Schema = {"enum": list(get_args(AppType))}

_APP = object_of(
    ("packageName", "name", "appType", "hardwareRequirements", "permissions", "version", "tools"),
    packageName=TEXT,
    name=TEXT,
    appType=_APP_TYPE,
    hardwareRequirements=list_of(ref("Requirement")),
    permissions=TEXTS,
    version={**COUNT, "description": "counts every change"},
    tools={**TEXTS, "description": "the names it gives them"},
    owner={"type": "string", "description": "the key that made it; for its owner, as what follows"},
    publicUrl=TEXT_OR_NULL,
    created=MOMENT,
    updated=MOMENT,
    warnings={**TEXTS, "description": "what is odd about it"},
    apiKey={"type": "string", "description": "shown this once, where the app is new"},
)

_NEW_APP = only_of(
    ("name",),
    name=TEXT,
    publicUrl={**TEXT_OR_NULL, "description": "where it takes calls: its webhook and its tools"},
    appType=_APP_TYPE,
    hardwareRequirements=list_of(ref("Requirement")),
    permissions=TEXTS,
)

_RUNNING = object_of(
    ("state",),
    state={"enum": ["connecting", "running", "grace_period", "resurrecting", "stopping", "stopped"]},
    since=MOMENT,
    foreground=FLAG,
    activated={"type": "boolean", "description": "a call of a tool started it"},
    error=TEXT_OR_NULL,
)

_INSTALLED = object_of(
    ("packageName", "name", "installedAt", "settings", "disabled", "compatibility", "running"),
    packageName=TEXT,
    name=TEXT,
    appType={"enum": [*get_args(AppType), None]},
    installedAt=MOMENT,
    settings=OBJECT,
    disabled=FLAG,
    compatibility=object_of(
        ("isCompatible", "missingRequired", "missingOptional", "warnings", "message"),
        isCompatible=FLAG,
        missingRequired=list_of(ref("Requirement")),
        missingOptional=list_of(ref("Requirement")),
        warnings=TEXTS,
        message=TEXT,
    ),
    running=ref("Running"),
)

_SESSION = object_of(
    ("sessionId", "userId", "device", "language", "timeZone", "startedAt"),
    sessionId=TEXT,
    userId=TEXT,
    device={**OBJECT_OR_NULL, "description": "its capabilities; null where none is connected"},
    language=TEXT_OR_NULL,
    timeZone=TEXT_OR_NULL,
    startedAt=MOMENT,
)

_USER = object_of(
    ("id", "language", "timeZone", "created", "apps", "disabled", "session", "device", "usage"),
    id=TEXT,
    language=TEXT_OR_NULL,
    timeZone=TEXT_OR_NULL,
    created=MOMENT,
    apps=list_of(ref("Installed")),
    disabled={**TEXTS, "description": "tools, and packages of whole apps"},
    session={"anyOf": [ref("Session"), {"type": "null"}]},
    device={"anyOf": [object_of(("model", "has"), model=TEXT, has=TEXTS), {"type": "null"}]},
    usage={"type": "string", "description": "where to ask how much was used for them"},
)

_LISTED_USER = object_of(
    ("id", "language", "timeZone", "created", "apps", "active"),
    id=TEXT,
    language=TEXT_OR_NULL,
    timeZone=TEXT_OR_NULL,
    created=MOMENT,
    apps={**TEXTS, "description": "packages"},
    active={"type": "boolean", "description": "has a session"},
)

_OLD_TOOL = object_of(
    ("id", "description"),
    id=TEXT,
    description=TEXT,
    activationPhrases=TEXTS,
    parameters={"type": "object", "additionalProperties": OBJECT},
    appPackageName=TEXT,
)

APP_SHAPES: dict[str, Schema] = {
    "Requirement": _REQUIREMENT,
    "App": _APP,
    "Apps": object_of(("apps",), apps=list_of(ref("App"))),
    "NewApp": _NEW_APP,
    "Removed": object_of(("removed",), packageName=TEXT, id=TEXT, removed=FLAG),
    "AppKey": object_of(("packageName", "apiKey"), packageName=TEXT, apiKey=_SHOWN_ONCE),
    "NewTools": only_of(("tools",), tools={**OBJECTS, "description": "all of the app's tools"}),
    "StoredTools": object_of(
        ("packageName", "version", "tools", "warnings"),
        packageName=TEXT,
        version=COUNT,
        tools=TEXTS,
        warnings=TEXTS,
    ),
    "AppTools": object_of(
        ("packageName", "version", "tools"), packageName=TEXT, version=COUNT, tools=OBJECTS
    ),
    "Running": _RUNNING,
    "Installed": _INSTALLED,
    "NewInstall": only_of(settings=OBJECT_OR_NULL),
    "Started": {"allOf": [object_of(("packageName",), packageName=TEXT, stopped=FLAG), ref("Running")]},
    "Session": _SESSION,
    "NewSession": only_of(
        device={"type": ["string", "object", "null"], "description": "a model's name, or capabilities"},
        language=TEXT_OR_NULL,
        timeZone=TEXT_OR_NULL,
    ),
    "Ended": object_of(("sessionId", "ended"), sessionId=TEXT, ended=FLAG),
    "User": _USER,
    "Users": object_of(("users",), users=list_of(_LISTED_USER)),
    "NewUser": only_of(language=TEXT_OR_NULL, timeZone=TEXT_OR_NULL),
    "Switched": object_of(("name", "disabled"), name=TEXT, disabled=FLAG),
    "Transcription": only_of(("text",), text=TEXT, isFinal=FLAG, language=TEXT_OR_NULL),
    "Delivered": object_of(("delivered",), delivered=COUNT),
    "Kept": object_of(
        ("success", "data"), success=FLAG, data={"type": "object", "additionalProperties": TEXT}
    ),
    "KeptValue": object_of(("success", "data"), success=FLAG, data=TEXT),
    "Keep": only_of(("data",), data={"type": "object", "additionalProperties": TEXT}),
    "KeepValue": only_of(("value",), value=TEXT),
    "Done": object_of(("success",), success=FLAG),
    "OldTools": list_of(_OLD_TOOL),
    "OldCall": object_of(("toolId",), toolId=TEXT, toolParameters=OBJECT_OR_NULL, userId=TEXT_OR_NULL),
    "OldAnswer": object_of(
        ("status",),
        status={"enum": ["success", "error"]},
        reply={"description": "what the tool says"},
        message=TEXT,
    ),
}
