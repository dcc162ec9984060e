"""JSON Schema validation: schemas are bounded and compiled once; errors are written for a model to act on."""

from toolcrib.schemas.bounds import too_deep
from toolcrib.schemas.errors import InvalidSchema
from toolcrib.schemas.explain import ValidationFault
from toolcrib.schemas.guard import GuardedSchema, check
from toolcrib.schemas.validator import Validator, compile_schema

__all__ = [
    "GuardedSchema",
    "InvalidSchema",
    "ValidationFault",
    "Validator",
    "check",
    "compile_schema",
    "too_deep",
]
