"""Validates arguments against the tool's JSON Schema; errors name the path of each fault."""

from dataclasses import dataclass

from toolcrib.errors import Refused
from toolcrib.interfaces import Handler, Outcome, Stage
from toolcrib.model import Call, JsonObject, Tool
from toolcrib.schemas import ValidationFault, compile_schema


@dataclass(frozen=True)
class Validate:
    """Compiles each tool's input schema once."""

    def fit(self, tool: Tool) -> Stage:
        """Return the stage; every tool has a schema."""
        compiled = compile_schema(tool.input_schema)
        fits = compiled.ok

        def validate(call: Call, proceed: Handler) -> Outcome:
            if not fits(call.arguments):
                faults = compiled.faults(call.arguments)
                message = f"{tool.name}: {'; '.join(fault.message for fault in faults)}"
                details = {"faults": [_fault_json(fault) for fault in faults]}
                raise Refused("INVALID_ARGUMENTS", message, path=faults[0].path, details=details)
            return proceed(call)

        return validate


def _fault_json(fault: ValidationFault) -> JsonObject:
    near = {} if fault.near is None else {"near": fault.near}
    return {"path": fault.path, "expected": fault.expected, **near}
