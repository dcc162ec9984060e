"""`toolcrib tools`: what there is to call."""

import click

from toolcrib.cli.desk import Desk, at_desk
from toolcrib.cli.place import Place, View, at_place, json_option, with_view
from toolcrib.cli.screen import hint, in_terminal, show_json, show_table
from toolcrib.model import JsonObject


@click.command("tools")
@at_place
@with_view
@click.option("--format", metavar="NAME", help="Print the JSON of a format, such as mcp.")
@click.option("--style", type=click.Choice(["qualified", "safe", "flat"]), help="How tools are named.")
@click.option(
    "--search", metavar="WORDS", help="Only tools whose name, description or tags hold all the words."
)
@json_option
def command(
    place: Place,
    view: View,
    *,
    format: str | None,
    style: str | None,
    search: str | None,
    as_json: bool,
) -> int:
    """List the tools."""

    async def work(desk: Desk) -> list[JsonObject]:
        return await desk.tools(view, format=format, style=style, search=search)

    tools = at_desk(place, work)
    if as_json or format is not None:
        show_json({"tools": tools})
        return 0
    show_table(("Tool", "Kind", "What it does"), [_row(tool) for tool in tools])
    if not tools:
        hint("there is no tool here; `toolcrib check` says why some may be missing")
    elif in_terminal():
        hint("Call one: toolcrib call NAME key=value …")
    return 0


def _row(tool: JsonObject) -> tuple[str, str, str]:
    first, _, _ = str(tool["description"]).partition("\n")
    return str(tool["name"]), str(tool["category"]), first
