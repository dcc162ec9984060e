"""Whatever is raised further in becomes a Result here, so that faces never see an exception."""

import logging
from dataclasses import dataclass

from toolcrib.errors import ToolcribError, problem
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Result, Tool

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recover:
    """The only place on the call path that catches everything."""

    def fit(self, tool: Tool) -> Stage:
        """Every tool can fail."""
        del tool
        return _recover


async def _recover(call: Call, proceed: Handler) -> Result:
    try:
        return await proceed(call)
    except ToolcribError as error:
        if error.__cause__ is not None:
            log.warning("%s: %s", call.tool.name, error, exc_info=error.__cause__, extra=_about(call))
        return Result(problem=error.problem)
    except Exception:
        log.exception("%s failed unexpectedly", call.tool.name, extra=_about(call))
        return Result(problem=problem("EXECUTION_ERROR", "the gateway failed; the operator has the details"))


def _about(call: Call) -> dict[str, str]:
    return {"call_id": call.id, "tool": call.tool.name, "trace_id": call.origin.trace_id}
