"""`toolcrib tools` and `toolcrib usage`: lists the tools, and prints how often each was called."""

from datetime import UTC, datetime

import click

from toolcrib.cli.backend import CallerView, Target, json_option, with_backend, with_target, with_view
from toolcrib.cli.output import in_terminal, print_note, show_json, show_table
from toolcrib.model import JsonObject

_JSON_FIELDS = ("tools", "cut", "withheld")

_NOT_FOUND = "no tool is found by these words; without --search all are listed"


@click.command("tools")
@with_target
@with_view
@click.option("--format", metavar="NAME", help="Print the JSON of a format, such as openai_chat.")
@click.option("--style", type=click.Choice(["qualified", "safe", "flat"]), help="How tools are named.")
@click.option("--search", metavar="WORDS", help="Only tools that match any of the words, best first.")
@json_option
def command(
    target: Target,
    view: CallerView,
    *,
    format: str | None,
    style: str | None,
    search: str | None,
    as_json: bool,
) -> int:
    """List the tools."""
    listed = with_backend(
        target, lambda backend: backend.listing(view, format=format, style=style, search=search)
    )
    tools = listed["tools"]
    if as_json or format is not None:
        show_json({name: listed[name] for name in _JSON_FIELDS if name in listed})
        return 0
    show_table(("Tool", "Kind", "What it does"), [_tool_row(tool) for tool in tools])
    if "cut" in listed:
        print_note(
            f"{listed['cut']} more are over what a list may hold here; they may be called all the same"
        )
    if not tools:
        print_note(
            _NOT_FOUND if search else "there is no tool here; `toolcrib check` says why some may be missing"
        )
    elif in_terminal():
        print_note("Call one: toolcrib call NAME key=value …")
    return 0


def _tool_row(tool: JsonObject) -> tuple[str, str, str]:
    first, _, _ = str(tool["description"]).partition("\n")
    return str(tool["name"]), str(tool["category"]), first


@click.command("usage")
@with_target
@json_option
def usage(target: Target, *, as_json: bool) -> int:
    """Print the number of calls, errors and cache hits of each tool, and its durations.

    The most used tools come first. Without --url, the numbers come from the store of the config here.
    """
    counts = with_backend(target, lambda backend: backend.usage())
    if as_json:
        show_json(counts)
        return 0
    tools = sorted(counts["tools"].items(), key=lambda each: -each[1]["calls"])
    head = ("Tool", "Calls", "Errors", "Cached", "p50", "p95", "Last used")
    show_table(head, [_usage_row(name, used) for name, used in tools])
    if not tools:
        print_note("No tool has been called yet.")
    return 0


def _usage_row(name: str, used: JsonObject) -> tuple[str, ...]:
    last = datetime.fromtimestamp(used["lastUsed"], UTC).isoformat(sep=" ", timespec="seconds")[:-6] + "Z"
    counts = (str(used[field]) for field in ("calls", "errors", "cached"))
    return name, *counts, *(f"{used[field]:.1f} ms" for field in ("p50", "p95")), last
