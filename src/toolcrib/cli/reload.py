"""`toolcrib reload`: a running gateway reads its config again and says what that changes."""

from collections.abc import Iterator, Sequence

import click

from toolcrib.cli import startup_gc
from toolcrib.cli.backend import Target, json_option, with_running_gateway
from toolcrib.cli.discovery import explain_connection_errors, find_gateway
from toolcrib.cli.output import print_error, print_note, show_json, show_table
from toolcrib.errors import ToolcribError, problem_json
from toolcrib.model import JsonObject, Problem

_MAX_SHOWN_CALLS = 5


@click.command("reload")
@with_running_gateway
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@json_option
def command(target: Target, *, dry_run: bool, as_json: bool) -> int:
    """Have a running gateway read its config again, and print what that changes.

    Without --url it is the gateway that the config here would start on this machine, with its admin key.
    Leaves with 1 where the gateway refuses the config and keeps the one it has.
    """
    try:
        plan = _reload(target, dry_run=dry_run)
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


def _reload(target: Target, *, dry_run: bool) -> JsonObject:
    url, key = find_gateway(target)
    with explain_connection_errors(target, url):
        return _reloaded(url, key, dry_run=dry_run)


def _reloaded(url: str, key: str, *, dry_run: bool) -> JsonObject:
    import anyio

    from toolcrib.cli.remote_backend import remote_backend

    async def ask() -> JsonObject:
        async with remote_backend(url, key) as backend:
            startup_gc.resume_collector()
            return await backend.reload(dry_run=dry_run)

    return anyio.run(ask)


def _show_refusal(problem: Problem, *, as_json: bool) -> None:
    if as_json:
        show_json({"success": False, "status": "error", "error": problem_json(problem)})
        return
    print_error("the config is refused, and the gateway keeps the one it has")
    for fault in problem.details["faults"]:
        print_error(_fault_line(fault))


def _fault_line(fault: JsonObject) -> str:
    file, line = fault.get("file"), fault.get("line")
    position = f"{file}:{line}" if file and line else file
    head = " ".join(str(part) for part in (position, fault.get("where")) if part)
    return f"{head}: {fault['message']}" if head else str(fault["message"])


def _show(plan: JsonObject, *, dry_run: bool) -> None:
    rows = list(_rows(plan))
    show_table(("What", "Which"), rows)
    if not rows:
        print_note("There are no servers, and nothing else has changed.")
    if dry_run:
        print_note("This is what a reload would do; nothing was changed.")


def _rows(plan: JsonObject) -> Iterator[tuple[str, str]]:
    for what in ("added", "removed", "changed", "untouched"):
        if plan[what]:
            yield what, ", ".join(plan[what])
    for server, calls in plan["deferred"].items():
        yield "deferred", f"{server} (until {_running_calls(calls)})"
    for what, said in (("applied", ""), ("restart", " (when the gateway is started again)")):
        if plan[what]:
            yield what, ", ".join(plan[what]) + said
    for warning in plan["warnings"]:
        yield "warning", str(warning)


def _running_calls(calls: Sequence[str]) -> str:
    named = ", ".join((*calls[:_MAX_SHOWN_CALLS], *(["…"] if len(calls) > _MAX_SHOWN_CALLS else [])))
    return f"this call ends: {named}" if len(calls) == 1 else f"{len(calls)} calls end: {named}"
