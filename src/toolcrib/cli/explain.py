"""`toolcrib explain`: prints whether a tool may be used, why, and the steps of a call."""

import click

from toolcrib.cli.backend import CallerView, Target, json_option, with_backend, with_target, with_view
from toolcrib.cli.output import print_error, print_line, show_json, show_table
from toolcrib.model import JsonObject


@click.command("explain")
@click.argument("name")
@with_target
@with_view
@json_option
def command(target: Target, view: CallerView, *, name: str, as_json: bool) -> int:
    """Explain whether the tool NAME may be used, why, and which steps a call passes.

    Exits with status 1 if there is no such tool.
    """
    found = with_backend(target, lambda backend: backend.explain(name, view))
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
    verdict = "may be used" if found["visible"] else "may not be used"
    print_line(f"{found['name']} {verdict} by {caller['id']} in the context {caller['context']}.")
    if found["reason"]:
        print_line(f"Reason: {found['reason']}")
    if found.get("cut"):
        print_line(f"Lists: {found['cut']}")
    rules = [
        (each["rule"], "pass" if each["verdict"] == "yes" else each["verdict"]) for each in found["rules"]
    ]
    show_table(("Rule", "Verdict"), rules)
    names = found["names"]
    all_names = dict.fromkeys((names["qualified"], names["safe"], names["flat"], *names["aliases"]))
    print_line(f"Names: {', '.join(all_names)}")
    print_line(f"Steps: {' > '.join((*found['steps'], found['source']))}")
    print_line(f"Hints for models: {found['hints']}")
    print_line(f"Declaration: about {found['declarationTokens']} tokens")
    print_line(f"From: {_origin(found['origin'])}")
    for change in found["changes"]:
        print_line(f"Changed at registration: {change}")


def _origin(origin: JsonObject) -> str:
    """Describe a tool's origin: its source, and the server's name and version if known."""
    known = ("transport", "server_name", "server_version", "revision")
    server = " ".join(str(origin[key]) for key in known if key in origin)
    kind = f"{origin['source']}, {origin['family']} source, {origin['state']}"
    pin = "; its definition differs from the trusted one" if "pin" in origin else ""
    return f"{kind}{f' ({server})' if server else ''}{pin}"
