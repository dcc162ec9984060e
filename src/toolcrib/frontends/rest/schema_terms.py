"""The words in which the API is described: plain JSON Schema, and what a route takes and gives."""

from typing import Any

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


TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": "number"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
OBJECT_OR_NULL: Schema = {"type": ["object", "null"]}
OBJECTS = list_of(OBJECT)
TEXTS = list_of(TEXT)
MOMENT: Schema = {"type": "number", "description": "seconds since 1970"}


def query(name: str, description: str, schema: Schema = TEXT, *, required: bool = False) -> Schema:
    """Describe a parameter of the query."""
    return {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


def header(name: str, description: str) -> Schema:
    """Describe a header."""
    return {"name": name, "in": "header", "description": description, "schema": TEXT}


def gives(shape: str, *statuses: str, more: Schema | None = None) -> dict[str, Any]:
    """Say what a route answers with; 200 unless said otherwise."""
    content = {"application/json": {"schema": ref(shape)}, **(more or {})}
    done = {"description": "done", "content": content}
    return {"responses": dict.fromkeys(statuses or ("200",), done)}


def takes(shape: str, *, required: bool = True) -> dict[str, Any]:
    """Say what a route's body is."""
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": ref(shape)}}}}
