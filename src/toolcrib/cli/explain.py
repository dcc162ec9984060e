"""`toolcrib explain`: why a tool may be used or not, and what a call to it would pass."""

import click

from toolcrib.cli.backend import (
    Backend,
    CallerView,
    Target,
    json_option,
    with_backend,
    with_target,
    with_view,
)
from toolcrib.cli.output import print_error, print_line, show_json, show_table
from toolcrib.model import JsonObject


@click.command("explain")
@click.argument("name")
@with_target
@with_view
@json_option
def command(target: Target, view: CallerView, *, name: str, as_json: bool) -> int:
    """Say whether the tool NAME may be used, why, and which steps a call passes.

    Leaves with 1 where there is no such tool.
    """

    async def work(backend: Backend) -> JsonObject:
        return await backend.explain(name, view)

    found = with_backend(target, work)
    known = "steps" in found
    if as_json:
        show_json(found)
    elif known:
        _show(found)
    else:
        print_error(str(found["reason"]))
    return 0 if known else 1


def _show(found: JsonObject) -> None:
    caller = found["caller"]
    seen = "may be used" if found["visible"] else "may not be used"
    print_line(f"{found['name']} {seen} by {caller['id']} in the context {caller['context']}.")
    if found["reason"]:
        print_line(f"Reason: {found['reason']}")
    if found.get("cut"):
        print_line(f"Lists: {found['cut']}")
    show_table(("Rule", "Verdict"), [(each["rule"], each["verdict"]) for each in found["rules"]])
    names = found["names"]
    spellings = dict.fromkeys((names["qualified"], names["safe"], names["flat"], *names["aliases"]))
    print_line(f"Names: {', '.join(spellings)}")
    print_line(f"Steps: {' > '.join((*found['steps'], found['source']))}")
    print_line(f"From: {_origin(found['origin'])}")
    for change in found["changes"]:
        print_line(f"Changed on the way in: {change}")


def _origin(origin: JsonObject) -> str:
    """Spell where a tool comes from: its source, then what is known of a server."""
    known = ("transport", "server_name", "server_version", "revision")
    server = " ".join(str(origin[key]) for key in known if key in origin)
    kind = f"{origin['source']}, {origin['family']} source, {origin['state']}"
    pin = "; its definition is not the trusted one" if "pin" in origin else ""
    return f"{kind}{f' ({server})' if server else ''}{pin}"
