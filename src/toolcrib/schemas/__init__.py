"""JSON Schema, guarded: what may come in, compiled once, with faults a model can act on."""

from toolcrib.schemas.bounds import too_deep
from toolcrib.schemas.errors import BadSchema
from toolcrib.schemas.explain import Fault
from toolcrib.schemas.guard import Guarded, check
from toolcrib.schemas.validator import Validator, compile_schema

__all__ = ["BadSchema", "Fault", "Guarded", "Validator", "check", "compile_schema", "too_deep"]
