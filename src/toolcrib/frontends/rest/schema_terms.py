"""Building blocks of the API description: JSON Schema helpers, and OpenAPI parameters and bodies."""

from typing import Any

from toolcrib.apps.definition_errors import NOT_PRINTED
from toolcrib.frontends.rest.fields import LONGEST_TEXT
from toolcrib.identity import LONGEST_USER

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    """Return a reference to a component schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(required: tuple[str, ...] = (), /, **properties: Any) -> Schema:
    """Return the schema of an object with these properties."""
    shape: Schema = {"type": "object", "properties": properties}
    return {**shape, "required": list(required)} if required else shape


def only_of(required: tuple[str, ...] = (), /, **properties: Any) -> Schema:
    """Return the schema of an object with only these properties."""
    return {**object_of(required, **properties), "additionalProperties": False}


def list_of(items: Schema) -> Schema:
    """Return the schema of an array of these items."""
    return {"type": "array", "items": items}


def text_of(longest: int, pattern: str | None = None, *, shortest: int = 1, **more: Any) -> Schema:
    """Return the schema of a string with length limits and an optional regular expression."""
    bounds: Schema = {"type": "string", "minLength": shortest, "maxLength": longest}
    return {**bounds, **({} if pattern is None else {"pattern": f"^{pattern}$"}), **more}


def or_null(schema: Schema) -> Schema:
    """Return the schema of the same value or null."""
    return {**schema, "type": [schema["type"], "null"]}


TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
FIELD = text_of(LONGEST_TEXT)
"""What `fields.text` accepts."""
FIELD_OR_NULL = or_null(FIELD)
PRINTABLE = f"( |[^{NOT_PRINTED}])+"
"""What `str.isprintable` accepts: no control character, no separator except the space."""
USER = text_of(LONGEST_USER, PRINTABLE)
_LATIN = "[!-~\u00a1-\u00ac\u00ae-\u00ff]"
USER_HEADER = text_of(LONGEST_USER, f"{_LATIN}([ ]*{_LATIN})*")
"""The same in a header: ISO 8859-1, without leading or trailing spaces."""
NUMBER: Schema = {"type": "number"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
OBJECT_OR_NULL: Schema = {"type": ["object", "null"]}
OBJECTS = list_of(OBJECT)
TEXTS = list_of(TEXT)
MOMENT: Schema = {"type": "number", "description": "seconds since 1970"}


def query(name: str, description: str, schema: Schema = FIELD, *, required: bool = False) -> Schema:
    """Return an OpenAPI query parameter."""
    return {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


def header(name: str, description: str, schema: Schema = TEXT, *, required: bool = False) -> Schema:
    """Return an OpenAPI header parameter."""
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def in_path(name: str, schema: Schema, example: str) -> Schema:
    """Return an OpenAPI path parameter."""
    return {"name": name, "in": "path", "required": True, "schema": schema, "example": example}


def gives(shape: str, *statuses: str, more: Schema | None = None) -> dict[str, Any]:
    """Return the OpenAPI responses with this body, by default for status 200."""
    content = {"application/json": {"schema": ref(shape)}, **(more or {})}
    done = {"description": "done", "content": content}
    return {"responses": dict.fromkeys(statuses or ("200",), done)}


def takes(shape: str, *, required: bool = True) -> dict[str, Any]:
    """Return the OpenAPI request body."""
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": ref(shape)}}}}
