"""JSON Schema of the hints for API descriptions, generated from the table that validates them."""

from typing import Any

from toolcrib.hints.field_table import RULES, Many, One
from toolcrib.hints.value_types import MOST, ValueType
from toolcrib.model import Hints
from toolcrib.model.hints import spoken


def schema(kind: type[Any] = Hints) -> dict[str, Any]:
    """Return the schema of a part, nested parts included."""
    shapes = {rule.name: rule.shape for rule in RULES[kind]}
    said = spoken(kind)
    described: dict[str, Any] = {
        "type": "object",
        "properties": {key: _described(shapes[name]) for name, (key, _) in said.items()},
    }
    needed = [key for key, always in said.values() if always]
    return {**described, "required": needed} if needed else described


def _described(shape: ValueType | One | Many) -> dict[str, Any]:
    if isinstance(shape, ValueType):
        return dict(shape.schema)
    inner = schema(shape.kind)
    return inner if isinstance(shape, One) else {"type": "array", "items": inner, "maxItems": MOST}
