"""`toolcrib audit`: lists audit records, and verifies their hash chain."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from toolcrib.cli.backend import AuditFilters, Backend, Target, json_option, with_backend, with_target
from toolcrib.cli.output import print_error, print_line, print_note, show_json, show_table
from toolcrib.errors import Refused
from toolcrib.model import JsonObject

if TYPE_CHECKING:
    from toolcrib.observe.audit import ChainCheck

MAX_PAGE_RECORDS = 1000
"""Maximum records of one page of `GET /api/audit`."""


def _parse_moment(_context: click.Context, _option: click.Parameter, given: str | None) -> float | None:
    """Parse a date, a date and time, or seconds since 1970."""
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        message = "must be a date or a date and time in UTC, such as 2026-01-31 or 2026-01-31T10:00"
        raise click.BadParameter(message) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@click.group("audit", invoke_without_command=True)
@with_target
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_PAGE_RECORDS),
    default=50,
    show_default=True,
    metavar="N",
    help="Maximum number of records.",
)
@click.option("--actor", metavar="NAME", help="Only actions of this key, or of this operating system user.")
@click.option(
    "--action", metavar="NAME", help="Only this action, such as keys.create, or a group such as keys."
)
@click.option(
    "--since", callback=_parse_moment, metavar="WHEN", help="Only records from this date or time on, in UTC."
)
@json_option
def command(
    target: Target, *, limit: int, actor: str | None, action: str | None, since: float | None, as_json: bool
) -> int:
    """List administrative actions and failed authentications, newest first."""
    if click.get_current_context().invoked_subcommand is not None:
        return 0

    records = with_backend(
        target,
        lambda backend: backend.audit(AuditFilters(limit=limit, actor=actor, action=action, since=since)),
    )
    if as_json:
        show_json({"records": records})
        return 0
    show_table(("Number", "When", "Who", "From", "Action", "Target", "Outcome"), map(_row, records))
    if not records:
        print_note("No records found.")
    return 0


@command.command("verify")
@with_target
@click.option("--head", metavar="HASH", help="A hash printed earlier; fail if its record is missing.")
@click.option("--allow-empty", is_flag=True, help="Accept a store without records, such as a new one.")
@json_option
def verify(target: Target, *, head: str | None, allow_empty: bool, as_json: bool) -> int:
    """Check that no record was changed, removed or inserted, and print the newest record's hash.

    Store that hash elsewhere: passed with --head, it proves later that no records were removed from the end.
    Exits with status 1 and names the first broken record if the chain is broken; also if there is no store,
    or no record in it.
    """

    async def work(backend: Backend) -> "ChainCheck":
        from toolcrib.observe.audit import check_chain

        return await check_chain(_all_records(backend), head)

    _check_store(target)
    found = with_backend(target, work)
    faults = _faults(found, head, allow_empty=allow_empty)
    if as_json:
        broken = None if found.intact else {"number": found.broken, "reason": found.reason}
        shown = {"intact": not faults, "records": found.records, "head": found.head}
        show_json({**shown, "broken": broken, "headFound": None if head is None else found.head_found})
    elif not faults:
        print_line(found.head or "none")
        print_note(f"All {found.records} records are intact. The line above is the hash of the newest one.")
    for fault in faults:
        print_error(fault)
    return 1 if faults else 0


def _check_store(target: Target) -> None:
    """Refuse to verify a store that does not exist: an empty one created instead would be intact."""
    from toolcrib.cli.local_backend import missing_store

    absent = None if target.url is not None else missing_store(target)
    if absent is not None:
        raise Refused("NOT_FOUND", f"there is no store at {absent}; select another with --config or --url")


def _faults(found: "ChainCheck", head: str | None, *, allow_empty: bool) -> list[str]:
    """Return what is wrong with the chain, most serious first."""
    faults: list[str] = []
    if not found.intact:
        faults.append(f"record {found.broken} {found.reason}")
    if head is not None and not found.head_found:
        faults.append(
            "no record has the hash given with --head: records were removed from the end, or replaced"
        )
    if not found.records and not allow_empty:
        faults.append("the store has no records; --allow-empty accepts a new store")
    return faults


async def _all_records(backend: Backend) -> AsyncGenerator[JsonObject]:
    """Yield all records page by page, newest first."""
    before: int | None = None
    while True:
        page = await backend.audit(AuditFilters(limit=MAX_PAGE_RECORDS, before=before))
        for record in page:
            yield record
        if len(page) < MAX_PAGE_RECORDS:
            return
        before = int(page[-1]["number"])


def _row(record: JsonObject) -> tuple[str, ...]:
    actor, origin = record["actor"], record["origin"]
    who = actor["kind"] if actor["name"] in ("", actor["kind"]) else f"{actor['kind']}:{actor['name']}"
    origin_text = f"{origin['frontend']} {origin['address']}".strip()
    moment = datetime.fromtimestamp(record["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    acting = f"{who} for {actor['user']}" if actor["user"] else who
    return (
        str(record["number"]),
        moment,
        acting,
        origin_text,
        str(record["action"]),
        str(record["target"]),
        str(record["outcome"]),
    )
