"""`toolcrib pins`: lists and approves tool definitions that changed since they were trusted."""

import click

from toolcrib.cli.backend import Target, json_option, with_backend, with_target
from toolcrib.cli.output import in_terminal, print_line, print_note, show_json, show_table
from toolcrib.model import JsonObject

_SHOWN_SEAL_CHARS = 12


@click.group("pins")
def command() -> None:
    """List and approve tool definitions that have changed.

    The first definition of a tool is trusted. When it changes, the tool is hidden until the new definition is
    approved (`pin: strict`), or is still served and only listed here (`pin: notify`).
    """


@command.command("list")
@with_target
@json_option
def list_(target: Target, *, as_json: bool) -> int:
    """List the tools whose definition differs from the trusted one."""
    pins = with_backend(target, lambda backend: backend.pins())
    if as_json:
        show_json({"pins": pins})
        return 0
    show_table(("Tool", "Pin", "Trusted", "Current"), [_row(pin) for pin in pins])
    if not pins:
        print_note("All definitions are trusted.")
    return 0


@command.command("approve")
@click.argument("name")
@with_target
@click.option("--seal", metavar="HASH", help="Approve only if the definition still has this hash.")
@json_option
def approve(target: Target, *, name: str, seal: str | None, as_json: bool) -> int:
    """Trust the current definition of the tool NAME."""
    approved = with_backend(target, lambda backend: backend.approve(name, seal), lasting=True)
    if as_json:
        show_json(approved)
    else:
        seal = str(approved["seal"])[:_SHOWN_SEAL_CHARS]
        print_line(f"The current definition of {approved['name']} is trusted ({seal}).")
    if target.url is None:
        print_note("A gateway on the same store applies this with its next reload; with --url, at once.")
    return 0


def _row(pin: JsonObject) -> tuple[str, ...]:
    # Programs get the whole hash, which --seal requires; in a terminal a prefix is enough to compare.
    length = _SHOWN_SEAL_CHARS if in_terminal() else None
    return str(pin["name"]), str(pin["mode"]), str(pin["trusted"])[:length], str(pin["seal"])[:length]
