"""Validates the result of a source against its contract, and serializes its data once."""

from dataclasses import dataclass

import orjson

from toolcrib.errors import Broken, ToolcribError
from toolcrib.hints import HintsError, faults
from toolcrib.hints.rules import rules_of
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Hints, Json, Result, Tool
from toolcrib.schemas import compile_schema

_NULL_DATA_RULE = (
    "a successful result must have data, and this one is null; return an empty list or object, "
    "or raise BusinessRuleError"
)
_NOT_JSON_RULE = "the result is not JSON (valid Unicode, 64-bit integers, at most 250 levels of nesting)"
_MAX_NAMED_FAULTS = 3
"""Maximum number of hint faults named in one error."""


@dataclass(frozen=True)
class Verify:
    """Raises `Broken` (CONTRACT_VIOLATION) with the violated rule."""

    def fit(self, tool: Tool) -> Stage:
        """Return the stage; the output schema is checked only for tools in this process, which we own."""
        checked_here = tool.inside and tool.output_schema is not None
        checked = compile_schema(tool.output_schema) if checked_here and tool.output_schema else None

        async def verify(call: Call, proceed: Handler) -> Result:
            try:
                result = await proceed(call)
            except ToolcribError as error:
                if error.hints is not None:
                    _check_hints(tool, error.hints)
                raise
            if result.hints is not None:
                _check_hints(tool, result.hints)
            if result.problem is not None or result.ask is not None:
                return result
            if result.data is None:
                result = _from_blocks(tool, result)
            encoded = _encode(tool, result.data)
            mismatches = checked.faults(result.data, "data") if checked else ()
            if mismatches:
                # Without the actual value: it may be secret, and the caller cannot fix it.
                rule = f"{mismatches[0].path} is not {mismatches[0].expected}"
                raise _broken(tool, f"the result does not match the output schema: {rule}")
            return result.replace(encoded=encoded)

        return verify


def _from_blocks(tool: Tool, result: Result) -> Result:
    """Return the result with its content blocks as data, for clients that read only the data."""
    if not result.content:
        raise _broken(tool, _NULL_DATA_RULE)
    return result.replace(data=list(result.content), structured=False)


def _check_hints(tool: Tool, hints: Hints) -> None:
    hint_faults = faults(hints)
    if hint_faults:
        unnamed = len(hint_faults) - _MAX_NAMED_FAULTS
        more = f", and {unnamed} more" if unnamed > 0 else ""
        # The values appear only in the log, as they may be confidential.
        cause = HintsError(hint_faults)
        raise _broken(tool, "; ".join(rules_of(hint_faults[:_MAX_NAMED_FAULTS])) + more) from cause


def _encode(tool: Tool, data: Json) -> bytes:
    try:
        return orjson.dumps(data)
    except TypeError as error:
        raise _broken(tool, _NOT_JSON_RULE) from error


def _broken(tool: Tool, rule: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", f"{tool.name}: {rule}")
