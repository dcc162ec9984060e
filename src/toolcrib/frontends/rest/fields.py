"""Fields of bodies and queries: validation, and their description in OpenAPI."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import isfinite
from typing import Any, cast

from toolcrib.apps.errors import NOT_PRINTED
from toolcrib.errors import Refused
from toolcrib.gateway import idempotency_key
from toolcrib.identity import MAX_USER_CHARS
from toolcrib.model import Json

# --- Validates the fields of a body and the parameters of a query; errors name the field ---

MAX_FIELD_CHARACTERS = 500
IDEMPOTENCY_HEADER = b"idempotency-key"
"""The header that is equivalent to the field `idempotencyKey`."""


def refused(path: str, message: str) -> Refused:
    """Return the error for one field."""
    return Refused("INVALID_REQUEST", f"{path} {message}", path=path)


def known_fields(body: Json, *known: str) -> dict[str, Any]:
    """Return the body if it is an object with only known fields."""
    if not isinstance(body, dict):
        raise Refused("INVALID_REQUEST", f"the body must be a JSON object with the fields {', '.join(known)}")
    fields = cast("dict[str, Any]", body)
    for name in fields:
        if name not in known:
            message = f"unknown field {name[:100]!r}; the fields are {', '.join(known)}"
            raise Refused("INVALID_REQUEST", message, path=name[:100])
    return fields


def text(fields: Mapping[str, Any], name: str, *, required: bool = False) -> str | None:
    """Return an optional text field, 1 to MAX_FIELD_CHARACTERS characters."""
    value = fields.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value or len(value) > MAX_FIELD_CHARACTERS:
        raise refused(name, f"must be a string of 1 to {MAX_FIELD_CHARACTERS} characters")
    return value


def required_text(fields: Mapping[str, Any], name: str) -> str:
    """Return a required text field."""
    return text(fields, name, required=True) or ""


def texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    """Return an optional field that is a list of texts."""
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or len(cast("list[Any]", value)) > MAX_FIELD_CHARACTERS:
        raise refused(name, "must be a list of strings")
    items = cast("list[Any]", value)
    if not all(isinstance(each, str) and 0 < len(each) <= MAX_FIELD_CHARACTERS for each in items):
        raise refused(name, f"must be a list of strings of 1 to {MAX_FIELD_CHARACTERS} characters")
    return tuple(items)


def flag(fields: Mapping[str, Any], name: str) -> bool:
    """Return a boolean field; False if it is missing."""
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise refused(name, "must be true or false")
    return value


def count(query: Mapping[str, str], name: str, *, default: int, maximum: int) -> int:
    """Return an integer parameter from 1 to `maximum`, or the default."""
    value = query.get(name)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit()) or len(value) > 9 or not 1 <= int(value) <= maximum:
        raise refused(name, f"must be a whole number from 1 to {maximum}")
    return int(value)


def moment(query: Mapping[str, str], name: str) -> float | None:
    """Return a parameter that is a Unix timestamp, in seconds."""
    value = query.get(name)
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = float("nan")
    if not isfinite(seconds):
        raise refused(name, "must be a number of seconds since 1970, such as 1760000000.5")
    return seconds


def day(query: Mapping[str, str], name: str) -> str | None:
    """Return a parameter that is an ISO 8601 date."""
    value = query.get(name)
    if value is None:
        return None
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise refused(name, "must be a date, such as 2026-01-31") from None


def choice(query: Mapping[str, str], name: str, accepted: tuple[str, ...], default: str) -> str:
    """Return a parameter that is one of the accepted values."""
    value = query.get(name, default)
    if value not in accepted:
        raise refused(name, f"must be one of {', '.join(accepted)}, not {value[:100]!r}")
    return value


DETAILS = ("full", "brief")
"""How much of a result a response holds."""
PREFER_HEADER = b"prefer"
MINIMAL_APPLIED = (b"preference-applied", b"return=minimal")


def wants_minimal(prefer: bytes | None) -> bool:
    """Whether a `Prefer` header (RFC 7240) has `return=minimal`; of several the first counts."""
    if prefer is None:
        return False
    preferences = (each.partition(";")[0].partition("=") for each in prefer.decode("latin-1").split(","))
    returns = [value.strip(' \t"') for name, _, value in preferences if name.strip().lower() == "return"]
    return returns[:1] == ["minimal"]


def request_idempotency_key(field: Json, header: bytes | None) -> str:
    """Return the idempotency key of the body or the header; the header may be a quoted string."""
    key = idempotency_key(field, "idempotencyKey")
    if header is None:
        return key
    header_text = header.decode("latin-1")
    quoted = len(header_text) > 1 and header_text[0] == header_text[-1] == '"'
    other = idempotency_key(header_text[1:-1] if quoted else header_text, "Idempotency-Key")
    if key and key != other:
        message = "idempotencyKey and the header Idempotency-Key differ; send one of them"
        raise Refused("INVALID_REQUEST", message, path="idempotencyKey")
    return other


# --- Building blocks of the API description: JSON Schema helpers, and OpenAPI parameters and bodies ---

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    """Return a reference to a component schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(required: Mapping[str, Schema] | None = None, /, **optional: Schema) -> Schema:
    """Return the schema of an object with these properties, required and optional."""
    schema: Schema = {"type": "object", "properties": {**(required or {}), **optional}}
    return {**schema, "required": list(required)} if required else schema


def only_of(required: Mapping[str, Schema] | None = None, /, **optional: Schema) -> Schema:
    """Return the schema of an object with these properties and no others."""
    return {**object_of(required, **optional), "additionalProperties": False}


def map_of(values: Schema, description: str) -> Schema:
    """Return the schema of an object with these values under any names."""
    return {"type": "object", "additionalProperties": values, "description": description}


def list_of(items: Schema) -> Schema:
    """Return the schema of an array of these items."""
    return {"type": "array", "items": items}


def text_of(max_length: int, pattern: str | None = None, *, min_length: int = 1, **more: Any) -> Schema:
    """Return the schema of a string with length limits and an optional regular expression."""
    bounds: Schema = {"type": "string", "minLength": min_length, "maxLength": max_length}
    return {**bounds, **({} if pattern is None else {"pattern": f"^{pattern}$"}), **more}


def or_null(schema: Schema) -> Schema:
    """Return the schema of the same value or null."""
    return {**schema, "type": [schema["type"], "null"]}


TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
FIELD = text_of(MAX_FIELD_CHARACTERS)
"""What `fields.text` accepts."""
FIELD_OR_NULL = or_null(FIELD)
PRINTABLE = f"( |[^{NOT_PRINTED}])+"
"""What `str.isprintable` accepts: no control character, no separator except the space."""
USER = text_of(MAX_USER_CHARS, PRINTABLE)
_LATIN = "[!-~\u00a1-\u00ac\u00ae-\u00ff]"
USER_HEADER = text_of(MAX_USER_CHARS, f"{_LATIN}([ ]*{_LATIN})*")
"""The same in a header: ISO 8859-1, without leading or trailing spaces."""
NUMBER: Schema = {"type": "number"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
OBJECT_OR_NULL: Schema = {"type": ["object", "null"]}
OBJECTS = list_of(OBJECT)
TEXTS = list_of(TEXT)
EVENT_STREAM: Schema = {"text/event-stream": {"schema": TEXT}}
"""The OpenAPI content of a response with server-sent events."""
TIMESTAMP: Schema = {"type": "number", "description": "seconds since 1970"}


def query(name: str, description: str, schema: Schema = FIELD, *, required: bool = False) -> Schema:
    """Return an OpenAPI query parameter."""
    return {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


def count_to(maximum: int) -> Schema:
    """Return the schema of an integer from 1 to `maximum`, as `count` accepts it."""
    return {**COUNT, "minimum": 1, "maximum": maximum}


def limit_of(items: str, maximum: int) -> Schema:
    """Return the OpenAPI query parameter `limit`."""
    return query("limit", f"maximum number of {items}", count_to(maximum))


def header(name: str, description: str, schema: Schema = TEXT, *, required: bool = False) -> Schema:
    """Return an OpenAPI header parameter."""
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def in_path(name: str, schema: Schema, example: str) -> Schema:
    """Return an OpenAPI path parameter."""
    return {"name": name, "in": "path", "required": True, "schema": schema, "example": example}


def operation(
    response: str,
    *statuses: str,
    body: str | None = None,
    optional_body: str | None = None,
    parameters: Sequence[Schema] = (),
    more: Schema | None = None,
) -> dict[str, Any]:
    """Return an OpenAPI operation: its body, its parameters, and its responses, by default for status 200.

    `response`, `body` and `optional_body` name component schemas; `more` has other contents of the response.
    """
    done = {"description": "done", "content": {**_json_content(response), **(more or {})}}
    document: dict[str, Any] = {"responses": dict.fromkeys(statuses or ("200",), done)}
    if parameters:
        document["parameters"] = list(parameters)
    if schema_name := body or optional_body:
        document["requestBody"] = {"required": body is not None, "content": _json_content(schema_name)}
    return document


def _json_content(schema_name: str) -> Schema:
    return {"application/json": {"schema": ref(schema_name)}}
