"""`toolcrib reload`: a running gateway reads its config again and says what that changes."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from toolcrib.cli import loading
from toolcrib.cli.place import KEY, Place, at_running, given_key, json_option
from toolcrib.cli.screen import complain, hint, show_json, show_table
from toolcrib.errors import ToolcribError, spell
from toolcrib.model import JsonObject, Problem

if TYPE_CHECKING:
    from toolcrib.config import Document

USUAL_PORT = 6740
_MOST_CALLS = 5
_NAMED = f"start one with `toolcrib serve`, or name one with --url and put its key in ${KEY}"


@click.command("reload")
@at_running
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@json_option
def command(place: Place, *, dry_run: bool, as_json: bool) -> int:
    """Have a running gateway read its config again, and print what that changes.

    Without --url it is the gateway that the config here would start on this machine, with its admin key.
    Leaves with 1 where the gateway refuses the config and keeps the one it has.
    """
    try:
        plan = _asked(place, dry_run=dry_run)
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


def _asked(place: Place, *, dry_run: bool) -> JsonObject:
    if place.url is not None and place.key is not None:
        return _reloaded(place.url, place.key, dry_run=dry_run)
    url, key = _nearby(place.config)
    try:
        return _reloaded(url, key, dry_run=dry_run)
    except ToolcribError as error:
        said = {
            "NETWORK_ERROR": f"no gateway answers at {url}",
            "UNAUTHENTICATED": f"the gateway at {url} does not take the key found here",
        }.get(error.problem.code)
        if said is None:
            raise
        raise click.UsageError(f"{said}; {_NAMED}") from error


def _reloaded(url: str, key: str, *, dry_run: bool) -> JsonObject:
    import anyio

    from toolcrib.cli.remote import remote_desk

    async def ask() -> JsonObject:
        async with remote_desk(url, key) as desk:
            loading.done()
            return await desk.reload(dry_run=dry_run)

    return anyio.run(ask)


def _nearby(config: str | None) -> tuple[str, str]:
    """Return where the gateway of this config would listen, and the key that opens it."""
    document = _document(config)
    host, port = ("127.0.0.1", None) if document is None else (document.server.host, document.server.port)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - where it listens, not where we do
    spelled = f"[{host}]" if ":" in host else host
    key = given_key() if os.environ.get(KEY) else _admin_key(document)
    if key is None:
        raise click.UsageError(f"there is no admin key here to reload a gateway with; {_NAMED}")
    return f"http://{spelled}:{port or USUAL_PORT}", key


def _document(config: str | None) -> "Document | None":
    """Read the config here; None where it has faults, since the gateway will say which."""
    from toolcrib.cli.document import read_document
    from toolcrib.config import ConfigError, find

    try:
        return read_document(config)
    except ConfigError:
        file = find(config, os.environ)
        if file is None or not file.is_file():
            raise
        return None


def _admin_key(document: "Document | None") -> str | None:
    from toolcrib.config import home
    from toolcrib.config.load import ADMIN_KEY
    from toolcrib.identity import admin_key, new_key
    from toolcrib.identity.admin import FILE

    given = os.environ.get(ADMIN_KEY) or (None if document is None else document.auth.admin_key)
    if not given and not (home(os.environ) / FILE).exists():
        return None
    return admin_key(given, home(os.environ), new_key)


def _show_refusal(problem: Problem, *, as_json: bool) -> None:
    if as_json:
        show_json({"success": False, "status": "error", "error": spell(problem)})
        return
    complain("the config is refused, and the gateway keeps the one it has")
    for fault in problem.details["faults"]:
        complain(_spelled(fault))


def _spelled(fault: JsonObject) -> str:
    file, line = fault.get("file"), fault.get("line")
    place = f"{file}:{line}" if file and line else file
    head = " ".join(str(part) for part in (place, fault.get("where")) if part)
    return f"{head}: {fault['message']}" if head else str(fault["message"])


def _show(plan: JsonObject, *, dry_run: bool) -> None:
    rows = list(_rows(plan))
    show_table(("What", "Which"), rows)
    if not rows:
        hint("There are no servers, and nothing else has changed.")
    if dry_run:
        hint("This is what a reload would do; nothing was changed.")


def _rows(plan: JsonObject) -> Iterator[tuple[str, str]]:
    for what in ("added", "removed", "changed", "untouched"):
        if plan[what]:
            yield what, ", ".join(plan[what])
    for server, calls in plan["deferred"].items():
        yield "deferred", f"{server} (until {_counted(calls)})"
    for what, said in (("applied", ""), ("restart", " (when the gateway is started again)")):
        if plan[what]:
            yield what, ", ".join(plan[what]) + said
    for warning in plan["warnings"]:
        yield "warning", str(warning)


def _counted(calls: Sequence[str]) -> str:
    named = ", ".join((*calls[:_MOST_CALLS], *(["…"] if len(calls) > _MOST_CALLS else [])))
    return f"this call ends: {named}" if len(calls) == 1 else f"{len(calls)} calls end: {named}"
