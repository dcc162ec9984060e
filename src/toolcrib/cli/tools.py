"""`toolcrib tools`: what there is to call."""

import click

from toolcrib.cli.backend import (
    CallerView,
    Target,
    json_option,
    with_backend,
    with_target,
    with_view,
)
from toolcrib.cli.output import in_terminal, print_note, show_json, show_table
from toolcrib.model import JsonObject

_JSON_FIELDS = ("tools", "cut", "withheld")

_NOT_FOUND = "no tool is found by these words; without --search all are listed"


@click.command("tools")
@with_target
@with_view
@click.option("--format", metavar="NAME", help="Print the JSON of a format, such as openai_chat.")
@click.option("--style", type=click.Choice(["qualified", "safe", "flat"]), help="How tools are named.")
@click.option("--search", metavar="WORDS", help="Only tools that any of the words speaks for, best first.")
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
    show_table(("Tool", "Kind", "What it does"), [_row(tool) for tool in tools])
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


def _row(tool: JsonObject) -> tuple[str, str, str]:
    first, _, _ = str(tool["description"]).partition("\n")
    return str(tool["name"]), str(tool["category"]), first
