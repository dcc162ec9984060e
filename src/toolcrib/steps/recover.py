"""Error boundary: converts every exception of the inner steps to a Result; frontends never see one."""

import logging
from dataclasses import dataclass

from toolcrib.errors import CODES, Broken, ToolcribError, problem
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Result, Tool
from toolcrib.model.value import SECRETS_FIELD, SecretArguments

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recover:
    """The only catch-all on the call path."""

    def fit(self, tool: Tool) -> Stage:
        """Return the stage; every tool can fail."""
        del tool
        return _recover


async def _recover(call: Call, proceed: Handler) -> Result:
    try:
        return await proceed(call)
    except ToolcribError as error:
        _log_error(call, error)
        return Result(problem=error.problem, hints=error.hints)
    except Exception:
        log.exception("%s failed unexpectedly", call.tool.name, extra=_log_fields(call, "EXECUTION_ERROR"))
        return Result(problem=problem("EXECUTION_ERROR", "the gateway failed; the operator has the details"))


def _log_error(call: Call, error: ToolcribError) -> None:
    """Log the stack of an error with a cause or of a broken contract; of other errors at DEBUG only."""
    code, cause = error.problem.code, error.__cause__
    if cause is None and not isinstance(error, Broken):
        level = logging.DEBUG
    else:
        level = logging.ERROR if CODES[code].error_class == "system" else logging.WARNING
    if log.isEnabledFor(level):
        name, message = call.tool.name, error.problem.message
        log.log(
            level,
            "%s",
            message if message.startswith(name) else f"{name}: {message}",
            exc_info=error,
            extra=_log_fields(call, code),
        )


def _log_fields(call: Call, code: str) -> dict[str, object]:
    """Return the log fields of a call, named as in its own lines, and its secrets to be masked."""
    return {
        SECRETS_FIELD: SecretArguments(call.arguments),
        "call_id": call.id,
        "tool": call.tool.name,
        "code": code,
        "caller": call.caller.id,
        "user_id": call.caller.user,
        "context_name": call.caller.context,
        "trace_id": call.origin.trace_id,
        "correlation_id": call.origin.correlation_id,
    }
