"""`toolcrib audit`: who changed what, and whether the record of it is complete."""

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
"""Records on one page, as `GET /api/audit` gives them."""


def _parse_moment(_context: click.Context, _option: click.Parameter, given: str | None) -> float | None:
    """Read a day, a moment or seconds since 1970."""
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        said = "must be a day or a moment in UTC, such as 2026-01-31 or 2026-01-31T10:00"
        raise click.BadParameter(said) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@click.group("audit", invoke_without_command=True)
@with_target
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_PAGE_RECORDS),
    default=50,
    show_default=True,
    metavar="N",
    help="The most records to list.",
)
@click.option("--actor", metavar="NAME", help="Only of this key, or of this user of the command line.")
@click.option("--action", metavar="NAME", help="Only this action, such as keys.create, or its group: keys.")
@click.option(
    "--since", callback=_parse_moment, metavar="WHEN", help="Not older than this day or moment (UTC)."
)
@json_option
def command(
    target: Target, *, limit: int, actor: str | None, action: str | None, since: float | None, as_json: bool
) -> int:
    """List administrative actions and failed authentications, the newest first."""
    if click.get_current_context().invoked_subcommand is not None:
        return 0

    async def work(backend: Backend) -> list[JsonObject]:
        return await backend.audit(AuditFilters(limit=limit, actor=actor, action=action, since=since))

    records = with_backend(target, work)
    if as_json:
        show_json({"records": records})
        return 0
    show_table(("Number", "When", "Who", "From", "Action", "Target", "Outcome"), map(_row, records))
    if not records:
        print_note("There are no such records.")
    return 0


@command.command("verify")
@with_target
@click.option("--head", metavar="HASH", help="A head printed earlier: nothing up to it may be missing.")
@click.option("--allow-empty", is_flag=True, help="Accept a store that holds no records, as a new one does.")
@json_option
def verify(target: Target, *, head: str | None, allow_empty: bool, as_json: bool) -> int:
    """Check that no record was changed, removed or inserted, and print the newest record's hash.

    Keep that hash elsewhere: with --head it proves later that no records were cut off the end. Exits with
    status 1 where the chain is broken, and names its first broken record; also where there is no store, or
    no record in it.
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
        print_note(f"{found.records} records, unbroken; the hash above is the head.")
    for fault in faults:
        print_error(fault)
    return 1 if faults else 0


def _check_store(target: Target) -> None:
    """Refuse to verify a store that is not there: an empty one in its place would be unbroken."""
    from toolcrib.cli.local_backend import missing_store

    absent = None if target.url is not None else missing_store(target)
    if absent is not None:
        raise Refused("NOT_FOUND", f"there is no store at {absent}; name another with --config or --url")


def _faults(found: "ChainCheck", head: str | None, *, allow_empty: bool) -> list[str]:
    """Say what is wrong with the chain, in the order of its weight."""
    faults: list[str] = []
    if not found.intact:
        faults.append(f"record {found.broken} {found.reason}")
    if head is not None and not found.head_found:
        faults.append("the given head is not in the chain: records were cut off its end, or all replaced")
    if not found.records and not allow_empty:
        faults.append("the store holds no records; --allow-empty accepts that of a new one")
    return faults


async def _all_records(backend: Backend) -> AsyncGenerator[JsonObject]:
    """Go through all records, the newest first, a page at a time."""
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
