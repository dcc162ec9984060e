"""JSON Schema, guarded: what may come in, compiled once, with faults a model can act on."""

from toolcrib.schemas.bad import BadSchema
from toolcrib.schemas.bounds import too_deep
from toolcrib.schemas.compile import Validator, compile_schema
from toolcrib.schemas.faults import Fault
from toolcrib.schemas.guard import Guarded, check

__all__ = ["BadSchema", "Fault", "Guarded", "Validator", "check", "compile_schema", "too_deep"]
