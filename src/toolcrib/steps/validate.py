"""Validates arguments against the tool's JSON Schema; errors name the path of each fault."""

from dataclasses import dataclass

from toolcrib.errors import Refused
from toolcrib.interfaces import Handler, Outcome, Stage
from toolcrib.model import Call, Tool
from toolcrib.schemas import compile_schema


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
                details = {"faults": [{"path": fault.path, "expected": fault.expected} for fault in faults]}
                raise Refused("INVALID_ARGUMENTS", message, path=faults[0].path, details=details)
            return proceed(call)

        return validate
