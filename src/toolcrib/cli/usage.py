"""`toolcrib usage`: how much each tool was used."""

from datetime import UTC, datetime

import click

from toolcrib.cli.backend import Backend, Target, json_option, with_backend, with_target
from toolcrib.cli.output import print_note, show_json, show_table
from toolcrib.model import JsonObject


@click.command("usage")
@with_target
@json_option
def command(target: Target, *, as_json: bool) -> int:
    """Say how often each tool was called, how often it failed, and how long it took.

    The tools used most come first. Without a running gateway, what the store of this one has is told.
    """

    async def work(backend: Backend) -> JsonObject:
        return await backend.usage()

    usage = with_backend(target, work)
    if as_json:
        show_json(usage)
        return 0
    tools = sorted(usage["tools"].items(), key=lambda each: -each[1]["calls"])
    head = ("Tool", "Calls", "Errors", "Cached", "p50", "p95", "Last used")
    show_table(head, [_row(name, used) for name, used in tools])
    if not tools:
        print_note("No tool was called yet.")
    return 0


def _row(name: str, used: JsonObject) -> tuple[str, ...]:
    last = datetime.fromtimestamp(used["lastUsed"], UTC).isoformat(sep=" ", timespec="seconds")[:-6] + "Z"
    counts = (str(used[field]) for field in ("calls", "errors", "cached"))
    return name, *counts, *(f"{used[field]:.1f} ms" for field in ("p50", "p95")), last
