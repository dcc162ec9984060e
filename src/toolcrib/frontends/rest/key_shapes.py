"""JSON Schemas of the request and response bodies of the key routes."""

from toolcrib.admin.key_admin import END_OF_TIME, MAX_NAME_LENGTH, MAX_OVERLAP_SECONDS, RESERVED_NAMES
from toolcrib.frontends.rest.fields import LONGEST_TEXT
from toolcrib.frontends.rest.schema_terms import (
    FIELD,
    FIELD_OR_NULL,
    FLAG,
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    USER,
    Schema,
    list_of,
    object_of,
    only_of,
    or_null,
    ref,
    text_of,
)

KEY_NAME: Schema = {
    **text_of(MAX_NAME_LENGTH, r"[\p{L}\p{N}._-]+"),
    "not": {"enum": sorted(RESERVED_NAMES)},
}
_PERMISSION = text_of(LONGEST_TEXT, r"(\*|([^*:]|[^:]{2,}):[^:]+)")
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
    ("name", "permissions", "contexts", "home", "actAs", "created"),
    name=TEXT,
    permissions=TEXTS,
    contexts={"type": ["array", "null"], "items": TEXT, "description": "null reaches every context"},
    home=TEXT,
    actAs=FLAG,
    user={**TEXT_OR_NULL, "description": "whose own key it is"},
    created=NUMBER,
    createdBy={**TEXT_OR_NULL, "description": "who made it, such as admin or key:NAME"},
    expires={**NUMBER_OR_NULL, "description": "when it stops being valid, in seconds since 1970"},
    rotated=NUMBER_OR_NULL,
    previousUntil={**NUMBER_OR_NULL, "description": "when the secret before the last rotation ends"},
    revoked=NUMBER_OR_NULL,
    lastUsed={**NUMBER_OR_NULL, "description": "when it last authenticated somebody, to the minute"},
)

KEY_SHAPES: dict[str, Schema] = {
    "Key": _KEY,
    "Keys": object_of(
        ("keys",),
        keys=list_of(ref("Key")),
        next={**TEXT, "description": "list on with this as `after`; left out where these were all"},
    ),
    "NewKey": {
        **object_of(
            ("name",),
            name=KEY_NAME,
            permissions={"type": ["array", "null"], "maxItems": LONGEST_TEXT, "items": _PERMISSION},
            contexts={
                "type": ["array", "null"],
                "minItems": 1,
                "maxItems": LONGEST_TEXT,
                "items": FIELD,
            },
            home={**FIELD_OR_NULL, "description": "one of `contexts`, where these are given"},
            actAs=FLAG,
            user={**or_null(USER), "description": "makes it this user's own key"},
            expires=_EXPIRES,
        ),
        "additionalProperties": False,
    },
    "Rotation": only_of(
        overlapSeconds={
            **NUMBER_OR_NULL,
            "minimum": 0,
            "maximum": MAX_OVERLAP_SECONDS,
            "description": "how long the old secret stays valid; 0 where it is left out",
        }
    ),
    "MadeKey": {
        "allOf": [ref("Key"), object_of(("key",), key={"type": "string", "description": "shown this once"})]
    },
}
