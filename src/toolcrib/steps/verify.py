"""What a source answers must keep the contract; it is encoded here, once."""

from dataclasses import dataclass

import orjson

from toolcrib.errors import Broken, ToolcribError
from toolcrib.hints import HintsError, faults
from toolcrib.hints.rules import rules_of
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Hints, Json, Result, Tool
from toolcrib.schemas import compile_schema

_NULL = (
    "a successful answer carries data, and this one is null; answer with an empty list or object, "
    "or raise BusinessRuleError"
)
_NOT_JSON = (
    "an answer must be JSON (whole characters, integers of 64 bits, 250 levels at most), and this one is not"
)
_TOLD = 3
"""So many broken rules are named at once."""


@dataclass(frozen=True)
class Verify:
    """Names the rule an answer breaks."""

    def fit(self, tool: Tool) -> Stage:
        """Every answer is verified; the output schema only of tools that run here, ours to answer for."""
        ours = tool.inside and tool.output_schema is not None
        checked = compile_schema(tool.output_schema) if ours and tool.output_schema else None

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
            wrong = checked.faults(result.data, "data") if checked else ()
            if wrong:
                # Without what came instead: it may be secret, and nobody who calls can mend it.
                rule = f"{wrong[0].path} is not {wrong[0].expected}"
                raise _broken(tool, f"the answer does not fit the output schema: {rule}")
            return result.replace(encoded=encoded)

        return verify


def _from_blocks(tool: Tool, result: Result) -> Result:
    """Whoever reads data alone must find what the blocks say."""
    if not result.content:
        raise _broken(tool, _NULL)
    return result.replace(data=list(result.content), structured=False)


def _check_hints(tool: Tool, hints: Hints) -> None:
    found = faults(hints)
    if found:
        more = f", and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
        # The values stay in the log: what a tool got wrong may be what nobody else should see.
        cause = HintsError(found)
        raise _broken(tool, "; ".join(rules_of(found[:_TOLD])) + more) from cause


def _encode(tool: Tool, data: Json) -> bytes:
    try:
        return orjson.dumps(data)
    except TypeError as error:
        raise _broken(tool, _NOT_JSON) from error


def _broken(tool: Tool, rule: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", f"{tool.name}: {rule}")
