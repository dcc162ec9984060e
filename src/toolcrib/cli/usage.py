"""`toolcrib usage`: prints calls, errors and durations of each tool."""

from datetime import UTC, datetime

import click

from toolcrib.cli.backend import Target, json_option, with_backend, with_target
from toolcrib.cli.output import print_note, show_json, show_table
from toolcrib.model import JsonObject


@click.command("usage")
@with_target
@json_option
def command(target: Target, *, as_json: bool) -> int:
    """Print the number of calls, errors and cache hits of each tool, and its durations.

    The most used tools come first. Without --url, the numbers come from the store of the config here.
    """
    usage = with_backend(target, lambda backend: backend.usage())
    if as_json:
        show_json(usage)
        return 0
    tools = sorted(usage["tools"].items(), key=lambda each: -each[1]["calls"])
    head = ("Tool", "Calls", "Errors", "Cached", "p50", "p95", "Last used")
    show_table(head, [_row(name, used) for name, used in tools])
    if not tools:
        print_note("No tool has been called yet.")
    return 0


def _row(name: str, used: JsonObject) -> tuple[str, ...]:
    last = datetime.fromtimestamp(used["lastUsed"], UTC).isoformat(sep=" ", timespec="seconds")[:-6] + "Z"
    counts = (str(used[field]) for field in ("calls", "errors", "cached"))
    return name, *counts, *(f"{used[field]:.1f} ms" for field in ("p50", "p95")), last
