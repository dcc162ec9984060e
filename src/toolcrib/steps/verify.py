"""What a source answers must keep the contract; it is encoded here, once."""

from dataclasses import dataclass

import orjson

from toolcrib.errors import Broken
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Json, Result, Tool
from toolcrib.schemas import compile_schema


@dataclass(frozen=True)
class Verify:
    """Names the rule an answer breaks."""

    def fit(self, tool: Tool) -> Stage:
        """Every answer is verified; the output schema only of tools that run here, ours to answer for."""
        ours = tool.family in ("function", "core") and tool.output_schema is not None
        checked = compile_schema(tool.output_schema) if ours and tool.output_schema else None

        async def verify(call: Call, proceed: Handler) -> Result:
            result = await proceed(call)
            if result.problem is not None or result.ask is not None:
                return result
            if result.data is None and not result.content:
                raise _broken(tool, "a successful answer carries data, and this one is null")
            encoded = _encode(tool, result.data)
            faults = checked.faults(result.data, "data") if checked else ()
            if faults:
                raise _broken(tool, f"the answer does not fit the output schema: {faults[0].message}")
            return result.but(encoded=encoded)

        return verify


def _encode(tool: Tool, data: Json) -> bytes:
    try:
        return orjson.dumps(data)
    except TypeError as error:
        raise _broken(tool, "an answer must be JSON, and this one is not") from error


def _broken(tool: Tool, rule: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", f"{tool.name}: {rule}")
