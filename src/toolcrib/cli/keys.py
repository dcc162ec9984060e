"""`toolcrib keys`: create, list, rotate and revoke API keys."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from time import time
from typing import Any

import click

from toolcrib.cli.backend import Backend, Target, json_option, with_backend, with_target
from toolcrib.cli.output import in_terminal, print_line, print_note, show_json, show_table
from toolcrib.errors import Refused
from toolcrib.model import JsonObject

# --- Reads spans of time and moments on the command line: `90s`, `30m`, `12h`, `30d`, `4w`, or a date ---

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_SPAN = re.compile(r"([0-9]{1,9})([smhdw])")


def _parse_span(text: str) -> float | None:
    found = _SPAN.fullmatch(text)
    return None if found is None else float(int(found[1]) * _UNITS[found[2]])


class SpanParameter(click.ParamType[float]):
    """A span of time, in seconds."""

    name = "SPAN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        span = _parse_span(str(value))
        if span is None:
            self.fail(f"{value!r} is no span of time; write it as 90s, 30m, 12h, 30d or 4w", param, ctx)
        return span


class MomentParameter(click.ParamType[float]):
    """A moment, in seconds since 1970: a span from now on, or a date."""

    name = "SPAN|DATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        span = _parse_span(str(value))
        if span is not None:
            return time() + span
        # Late, because only this option needs it.
        from toolcrib.admin.key_admin import read_moment

        try:
            return read_moment(str(value), "it")
        except Refused:
            said = f"{value!r} is neither a span such as 30d nor a date such as 2027-01-31"
            self.fail(said, param, ctx)


# --- `toolcrib keys`: who may call ---


@click.group("keys")
def command() -> None:
    """Make, list, replace and end API keys.

    With --url the running gateway makes the change, at once. Without it the store is changed directly, and a
    gateway that runs on the same store follows within seconds.
    """


@command.command("create")
@click.argument("name")
@with_target
@click.option("--permission", "permissions", multiple=True, metavar="P", help="May do this; can come again.")
@click.option("--act-as", is_flag=True, help="May act for users.")
@click.option(
    "--context",
    "contexts",
    multiple=True,
    metavar="NAME",
    help="Only in this context (* for all); can come again.",
)
@click.option("--user", metavar="ID", help="It is this user's own key, and acts for them alone.")
@click.option("--home", metavar="NAME", help="The context it is in unless it asks for another.")
@click.option(
    "--expires",
    type=MomentParameter(),
    help="It is valid for so long (90s, 12h, 30d, 4w), or until this date in UTC.",
)
@json_option
def create(
    target: Target,
    *,
    name: str,
    permissions: Sequence[str],
    act_as: bool,
    contexts: Sequence[str],
    user: str | None,
    home: str | None,
    expires: float | None,
    as_json: bool,
) -> int:
    """Make a key called NAME. It is shown this once."""
    usual = not contexts or not {"default", "*"}.isdisjoint(contexts)
    first = "default" if usual else contexts[0]

    async def work(backend: Backend) -> JsonObject:
        return await backend.create_key(
            name,
            permissions=permissions,
            contexts=contexts or None,
            home=home or first,
            act_as=act_as,
            user=user,
            expires=expires,
        )

    _show_key(with_backend(target, work, lasting=True), target, as_json=as_json)
    return 0


@command.command("list")
@with_target
@json_option
def list_(target: Target, *, as_json: bool) -> int:
    """List the keys, without the keys themselves."""
    keys = with_backend(target, lambda backend: backend.keys())
    if as_json:
        show_json({"keys": keys})
        return 0
    columns = (
        "Name",
        "State",
        "Home",
        "Contexts",
        "Permissions",
        "Acts for others",
        "User",
        "Made",
        "By",
        "Expires",
        "Last used",
    )
    show_table(columns, [_row(key) for key in keys])
    if not keys:
        print_note("there are no keys yet; `toolcrib keys create NAME` makes one")
    return 0


@command.command("rotate")
@click.argument("name")
@with_target
@click.option(
    "--overlap", type=SpanParameter(), default="0s", help="The old one stays valid for so long, such as 1h."
)
@json_option
def rotate(target: Target, *, name: str, overlap: float, as_json: bool) -> int:
    """Put another key in place of NAME's. The old one ends at once, or after the overlap."""
    _show_key(
        with_backend(target, lambda backend: backend.rotate_key(name, overlap), lasting=True),
        target,
        as_json=as_json,
    )
    return 0


@command.command("revoke")
@click.argument("name")
@with_target
@json_option
def revoke(target: Target, *, name: str, as_json: bool) -> int:
    """End the key of NAME at once."""
    with_backend(target, lambda backend: backend.revoke_key(name), lasting=True)
    if as_json:
        show_json({"name": name, "revoked": True})
    else:
        print_note(f"The key of {name} is revoked.")
    _mention_running(target)
    return 0


def _show_key(made: JsonObject, target: Target, *, as_json: bool) -> None:
    """Print the key alone on standard output, so that it can go straight into a file."""
    if as_json:
        show_json(made)
    else:
        print_line(str(made["key"]))
    if in_terminal():
        print_note(f"This is the key of {made['name']}. It is shown this once: keep it now.")
    _mention_running(target)


def _mention_running(target: Target) -> None:
    if target.url is None:
        print_note(
            "A gateway that runs on the same store follows within seconds; with --url it does at once."
        )


def _row(key: JsonObject) -> tuple[str, ...]:
    contexts = "all" if key["contexts"] is None else " ".join(key["contexts"])
    return (
        str(key["name"]),
        _state(key),
        str(key["home"]),
        contexts,
        " ".join(key["permissions"]) or "none",
        "yes" if key["actAs"] else "no",
        key["user"] or "none",
        _format_moment(key["created"]),
        key["createdBy"] or "unknown",
        "never" if key["expires"] is None else _format_moment(key["expires"]),
        "never" if key["lastUsed"] is None else _format_moment(key["lastUsed"]),
    )


def _state(key: JsonObject) -> str:
    """Say whether a key can be used, and whether the one before it still can."""
    now = time()
    if key["revoked"] is not None:
        return "revoked"
    if key["expires"] is not None and key["expires"] <= now:
        return "expired"
    until = key["previousUntil"]
    return "live" if until is None or until <= now else f"live, the old one until {_format_moment(until)}"


def _format_moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
