"""What went wrong, as one line that says what to do, or as JSON; and the exit code it means."""

import os
import traceback
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from toolcrib.cli.output import complain, show_json
from toolcrib.errors import ToolcribError, problem, problem_json
from toolcrib.model import Problem

FAILED, WRONG_USE = 1, 2
DEBUG = "TOOLCRIB_DEBUG"


def report(error: Exception, *, as_json: bool) -> int:
    """Tell the user, and return the exit code."""
    error = _single(error)
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    found, code = _understood(error)
    if as_json:
        show_json({"success": False, "status": "error", "error": problem_json(found)})
    elif isinstance(error, NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
    else:
        complain(found.message)
    return code


def _single(error: Exception) -> Exception:
    """Return the one error of a group, as a task group leaves it."""
    inner: tuple[Exception, ...] = getattr(error, "exceptions", ())
    return _single(inner[0]) if len(inner) == 1 else error


def _understood(error: Exception) -> tuple[Problem, int]:
    if isinstance(error, click.Abort):
        return problem("CANCELLED", "stopped"), FAILED
    if isinstance(error, click.ClickException):
        return _misused(error), WRONG_USE
    if isinstance(error, ToolcribError):
        wrong_use = error.problem.code == "INVALID_REQUEST"
        return error.problem, WRONG_USE if wrong_use else FAILED
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return problem("EXECUTION_ERROR", f"{place}{error.strerror or error}"), FAILED
    return _of_the_config(error) or (_unforeseen(error), FAILED)


def _misused(error: click.ClickException) -> Problem:
    message = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    where = "" if context is None else f"; see `{context.command_path} --help`"
    return problem("INVALID_REQUEST", message + where)


def _of_the_config(error: Exception) -> tuple[Problem, int] | None:
    # Late, because these load what checks a config, and most mistakes are made before that.
    from toolcrib.config import ConfigError
    from toolcrib.http.runner import PortTaken
    from toolcrib.sources.functions import ModuleProblem

    if isinstance(error, ConfigError):
        faults = [spelled_fault(each) for each in error.faults]
        return problem("INVALID_REQUEST", str(error), details={"faults": faults}), WRONG_USE
    if isinstance(error, ModuleProblem):
        return problem("INVALID_REQUEST", f"functions: {error}"), WRONG_USE
    if isinstance(error, PortTaken):
        return problem("EXECUTION_ERROR", str(error)), FAILED
    return None


def spelled_fault(fault: Any) -> dict[str, Any]:
    """Spell one fault of a config for a program."""
    line = None if fault.place is None else fault.place.line
    return {"file": fault.file or None, "line": line, "path": fault.path or None, "message": fault.message}


def _unforeseen(error: Exception) -> Problem:
    # The message of an error nobody foresaw may hold anything, a secret too; its kind cannot.
    said = f"this should not have happened ({type(error).__name__}); {DEBUG}=1 shows where"
    return problem("EXECUTION_ERROR", said)
