"""JSON Schema, guarded: what may come in, compiled once, with faults a model can act on."""

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
