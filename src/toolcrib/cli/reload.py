"""`toolcrib reload`: reloads the config of a running gateway and prints the changes."""

from collections.abc import Iterator, Sequence

import click

from toolcrib.cli.backend import Target, json_option, with_running_gateway
from toolcrib.cli.discovery import with_running_backend
from toolcrib.cli.output import print_error, print_note, show_json, show_table
from toolcrib.errors import ToolcribError, problem_json
from toolcrib.model import JsonObject, Problem

_MAX_SHOWN_CALLS = 5


@click.command("reload")
@with_running_gateway
@click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
@json_option
def command(target: Target, *, dry_run: bool, as_json: bool) -> int:
    """Reload the config of a running gateway, and print the changes.

    Without --url, it is the gateway of the config here, on this machine, and its admin key is used. Exits
    with status 1 if the config is invalid; the gateway then keeps its current config.
    """
    try:
        plan = with_running_backend(target, lambda backend: backend.reload(dry_run=dry_run))
    except ToolcribError as error:
        if "faults" not in error.problem.details:
            raise
        _show_refusal(error.problem, as_json=as_json)
        return 1
    if as_json:
        show_json(plan)
    else:
        _show(plan, dry_run=dry_run)
    return 0


def _show_refusal(problem: Problem, *, as_json: bool) -> None:
    if as_json:
        show_json({"success": False, "status": "error", "error": problem_json(problem)})
        return
    print_error("the config is invalid; the gateway keeps its current config")
    for fault in problem.details["faults"]:
        print_error(_fault_line(fault))


def _fault_line(fault: JsonObject) -> str:
    file, line = fault.get("file"), fault.get("line")
    position = f"{file}:{line}" if file and line else file
    head = " ".join(str(part) for part in (position, fault.get("where")) if part)
    return f"{head}: {fault['message']}" if head else str(fault["message"])


def _show(plan: JsonObject, *, dry_run: bool) -> None:
    rows = list(_rows(plan))
    show_table(("Change", "Names"), rows)
    if not rows:
        print_note("There are no servers, and no other setting has changed.")
    if dry_run:
        print_note("Nothing was changed (--dry-run).")


def _rows(plan: JsonObject) -> Iterator[tuple[str, str]]:
    for what in ("added", "removed", "changed", "untouched"):
        if plan[what]:
            yield what, ", ".join(plan[what])
    for server, calls in plan["deferred"].items():
        yield "deferred", f"{server} (until {_running_calls(calls)})"
    for what, note in (("applied", ""), ("restart", " (after a restart of the gateway)")):
        if plan[what]:
            yield what, ", ".join(plan[what]) + note
    for warning in plan["warnings"]:
        yield "warning", str(warning)


def _running_calls(calls: Sequence[str]) -> str:
    named = ", ".join((*calls[:_MAX_SHOWN_CALLS], *(["…"] if len(calls) > _MAX_SHOWN_CALLS else [])))
    return f"this call ends: {named}" if len(calls) == 1 else f"{len(calls)} calls end: {named}"
