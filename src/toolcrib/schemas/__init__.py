"""JSON Schema validation: schemas are bounded and compiled once; errors are written for a model to act on."""

from toolcrib.schemas.explain import ValidationFault
from toolcrib.schemas.repair import holds_secret, nearest_name, repaired
from toolcrib.schemas.subschemas import InvalidSchema, too_deep
from toolcrib.schemas.validator import GuardedSchema, Validator, check, compile_schema

__all__ = [
    "GuardedSchema",
    "InvalidSchema",
    "ValidationFault",
    "Validator",
    "check",
    "compile_schema",
    "holds_secret",
    "nearest_name",
    "repaired",
    "too_deep",
]
