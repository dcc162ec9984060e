"""`toolcrib pins`: definitions of tools that have changed since they were trusted."""

import click

from toolcrib.cli.backend import Target, json_option, with_backend, with_target
from toolcrib.cli.output import in_terminal, print_line, print_note, show_json, show_table
from toolcrib.model import JsonObject

_SHOWN_SEAL_CHARS = 12


@click.group("pins")
def command() -> None:
    """List and approve definitions that have changed.

    A tool is trusted as it was first seen. With `pin: strict` a changed one is hidden until it is approved,
    with `pin: notify` it is served and listed here.
    """


@command.command("list")
@with_target
@json_option
def list_(target: Target, *, as_json: bool) -> int:
    """List the tools whose definition is not the trusted one."""
    pins = with_backend(target, lambda backend: backend.pins())
    if as_json:
        show_json({"pins": pins})
        return 0
    show_table(("Tool", "Pin", "Trusted", "Now"), [_row(pin) for pin in pins])
    if not pins:
        print_note("Every definition is the one that was trusted.")
    return 0


@command.command("approve")
@click.argument("name")
@with_target
@click.option("--seal", metavar="HASH", help="Only if the definition is still this one.")
@json_option
def approve(target: Target, *, name: str, seal: str | None, as_json: bool) -> int:
    """Trust the definition of the tool NAME as it is now."""
    approved = with_backend(target, lambda backend: backend.approve(name, seal), lasting=True)
    if as_json:
        show_json(approved)
    else:
        print_line(
            f"{approved['name']} is trusted as it is now ({str(approved['seal'])[:_SHOWN_SEAL_CHARS]})."
        )
    if target.url is None:
        print_note("A gateway that runs on the same store follows with its next reload, with --url at once.")
    return 0


def _row(pin: JsonObject) -> tuple[str, ...]:
    # A program gets the whole hash, which --seal wants; people only compare.
    length = _SHOWN_SEAL_CHARS if in_terminal() else None
    return str(pin["name"]), str(pin["mode"]), str(pin["trusted"])[:length], str(pin["seal"])[:length]
