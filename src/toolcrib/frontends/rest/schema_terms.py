"""The words in which the API is described: plain JSON Schema, and what a route takes and gives."""

from typing import Any

from toolcrib.apps.definition_errors import NOT_PRINTED
from toolcrib.frontends.rest.fields import LONGEST_TEXT
from toolcrib.identity import LONGEST_USER

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    """Point to one of the shapes."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(required: tuple[str, ...] = (), /, **properties: Any) -> Schema:
    """Describe an object by its properties."""
    shape: Schema = {"type": "object", "properties": properties}
    return {**shape, "required": list(required)} if required else shape


def only_of(required: tuple[str, ...] = (), /, **properties: Any) -> Schema:
    """Describe an object that has no other properties than these."""
    return {**object_of(required, **properties), "additionalProperties": False}


def list_of(items: Schema) -> Schema:
    """Describe a list by what is in it."""
    return {"type": "array", "items": items}


def text_of(longest: int, pattern: str | None = None, *, shortest: int = 1, **more: Any) -> Schema:
    """Describe a text by its length and, where it has one, its regular expression."""
    bounds: Schema = {"type": "string", "minLength": shortest, "maxLength": longest}
    return {**bounds, **({} if pattern is None else {"pattern": f"^{pattern}$"}), **more}


def or_null(schema: Schema) -> Schema:
    """Describe the same value, or null in its place."""
    return {**schema, "type": [schema["type"], "null"]}


TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
FIELD = text_of(LONGEST_TEXT)
"""What `fields.text` accepts."""
FIELD_OR_NULL = or_null(FIELD)
PRINTABLE = f"( |[^{NOT_PRINTED}])+"
"""What `str.isprintable` accepts: no control character, no separator but the space."""
USER = text_of(LONGEST_USER, PRINTABLE)
_LATIN = "[!-~\u00a1-\u00ac\u00ae-\u00ff]"
USER_HEADER = text_of(LONGEST_USER, f"{_LATIN}([ ]*{_LATIN})*")
"""The same in a header, whose value is ISO 8859-1 without spaces around it."""
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
    """Describe a parameter of the query."""
    return {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


def header(name: str, description: str, schema: Schema = TEXT, *, required: bool = False) -> Schema:
    """Describe a header."""
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def in_path(name: str, schema: Schema, example: str) -> Schema:
    """Describe a parameter of the path."""
    return {"name": name, "in": "path", "required": True, "schema": schema, "example": example}


def gives(shape: str, *statuses: str, more: Schema | None = None) -> dict[str, Any]:
    """Say what a route answers with; 200 unless said otherwise."""
    content = {"application/json": {"schema": ref(shape)}, **(more or {})}
    done = {"description": "done", "content": content}
    return {"responses": dict.fromkeys(statuses or ("200",), done)}


def takes(shape: str, *, required: bool = True) -> dict[str, Any]:
    """Say what a route's body is."""
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": ref(shape)}}}}
