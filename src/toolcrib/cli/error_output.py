"""Prints errors, as one line that says what to do or as JSON, and maps them to exit statuses."""

import os
import traceback
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from toolcrib.cli.output import print_error, show_json
from toolcrib.errors import ToolcribError, problem, problem_json
from toolcrib.model import Problem

EXIT_FAILED, EXIT_USAGE = 1, 2
DEBUG_VARIABLE = "TOOLCRIB_DEBUG"


def report_error(error: Exception, *, as_json: bool) -> int:
    """Print the error and return the exit status."""
    error = _unwrap_group(error)
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    found, code = _problem_and_status(error)
    if as_json:
        show_json({"success": False, "status": "error", "error": problem_json(found)})
    elif isinstance(error, NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
    else:
        print_error(found.message)
    return code


def _unwrap_group(error: Exception) -> Exception:
    """Unwrap the exception group of a task group, if it has one exception."""
    inner: tuple[Exception, ...] = getattr(error, "exceptions", ())
    return _unwrap_group(inner[0]) if len(inner) == 1 else error


def _problem_and_status(error: Exception) -> tuple[Problem, int]:
    if isinstance(error, click.Abort):
        return problem("CANCELLED", "interrupted"), EXIT_FAILED
    if isinstance(error, click.ClickException):
        return _usage_problem(error), EXIT_USAGE
    if isinstance(error, ToolcribError):
        wrong_use = error.problem.code == "INVALID_REQUEST"
        return error.problem, EXIT_USAGE if wrong_use else EXIT_FAILED
    if isinstance(error, OSError):
        prefix = f"{error.filename}: " if error.filename else ""
        return problem("EXECUTION_ERROR", f"{prefix}{error.strerror or error}"), EXIT_FAILED
    return _config_problem(error) or (_unexpected_problem(error), EXIT_FAILED)


def _usage_problem(error: click.ClickException) -> Problem:
    message = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    where = "" if context is None else f"; see `{context.command_path} --help`"
    return problem("INVALID_REQUEST", message + where)


def _config_problem(error: Exception) -> tuple[Problem, int] | None:
    # Imported here: these modules import the config's validation, which most errors do not need.
    from toolcrib.config import ConfigError
    from toolcrib.http.runner import PortTaken
    from toolcrib.sources.functions import ModuleProblem

    if isinstance(error, ConfigError):
        faults = [fault_json(each) for each in error.faults]
        return problem("INVALID_REQUEST", str(error), details={"faults": faults}), EXIT_USAGE
    if isinstance(error, ModuleProblem):
        return problem("INVALID_REQUEST", f"functions: {error}"), EXIT_USAGE
    if isinstance(error, PortTaken):
        return problem("EXECUTION_ERROR", str(error)), EXIT_FAILED
    return None


def fault_json(fault: Any) -> dict[str, Any]:
    """Return the JSON object of one config error."""
    line = None if fault.position is None else fault.position.line
    return {"file": fault.file or None, "line": line, "path": fault.path or None, "message": fault.message}


def _unexpected_problem(error: Exception) -> Problem:
    # The message of an unexpected error is not shown, as it may contain a secret; its type cannot.
    message = f"unexpected error: {type(error).__name__}; set {DEBUG_VARIABLE}=1 to see the traceback"
    return problem("EXECUTION_ERROR", message)
