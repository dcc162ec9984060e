"""`toolcrib keys` and `toolcrib link`: manages API keys, and creates one-time sign-in links."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from time import time
from typing import Any

import click

from toolcrib.cli.backend import Backend, Target, json_option, with_backend, with_running_gateway, with_target
from toolcrib.cli.discovery import with_running_backend
from toolcrib.cli.output import (
    in_terminal,
    may_show_secrets,
    print_line,
    print_note,
    show_json,
    show_link,
    show_table,
)
from toolcrib.errors import Refused
from toolcrib.model import JsonObject

# --- Durations (`90s`, `30m`, `12h`, `30d`, `4w`) and dates on the command line ---

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_SPAN = re.compile(r"([0-9]{1,9})([smhdw])")


def _parse_span(text: str) -> float | None:
    found = _SPAN.fullmatch(text)
    return None if found is None else float(int(found[1]) * _UNITS[found[2]])


class SpanParameter(click.ParamType[float]):
    """A duration, in seconds."""

    name = "SPAN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the value."""
        span = _parse_span(str(value))
        if span is None:
            self.fail(f"{value!r} is not a duration; write it as 90s, 30m, 12h, 30d or 4w", param, ctx)
        return span


class MomentParameter(click.ParamType[float]):
    """A date, or a duration from now, as seconds since the epoch."""

    name = "SPAN|DATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the value."""
        span = _parse_span(str(value))
        if span is not None:
            return time() + span
        # Imported here, because only this option needs it.
        from toolcrib.admin.key_admin import read_moment

        try:
            return read_moment(str(value), "it")
        except Refused:
            message = f"{value!r} is neither a duration such as 30d nor a date such as 2027-01-31"
            self.fail(message, param, ctx)


# --- `toolcrib keys` ---


@click.group("keys")
def command() -> None:
    """Create, list, rotate and revoke API keys.

    With --url, the running gateway makes the change, at once. Without it, the store is changed directly, and
    a gateway that runs on the same store applies the change within seconds.
    """


@command.command("create")
@click.argument("name")
@with_target
@click.option(
    "--permission", "permissions", multiple=True, metavar="P", help="Grant this permission; repeatable."
)
@click.option("--act-as", is_flag=True, help="Allow the key to act for users.")
@click.option(
    "--context",
    "contexts",
    multiple=True,
    metavar="NAME",
    help="Restrict the key to this context (* for all); repeatable.",
)
@click.option("--user", metavar="ID", help="Make it this user's own key, which acts only for them.")
@click.option("--home", metavar="NAME", help="The context of requests that name none.")
@click.option(
    "--expires",
    type=MomentParameter(),
    help="Expire after a duration (90s, 12h, 30d, 4w), or on this date in UTC.",
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
    """Create a key called NAME and print it. It cannot be shown again."""
    has_default = not contexts or not {"default", "*"}.isdisjoint(contexts)
    default_home = "default" if has_default else contexts[0]

    async def work(backend: Backend) -> JsonObject:
        return await backend.create_key(
            name,
            permissions=permissions,
            contexts=contexts or None,
            home=home or default_home,
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
    """List the keys, without their secrets."""
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
        print_note("There are no keys. Create one with `toolcrib keys create NAME`.")
    return 0


@command.command("rotate")
@click.argument("name")
@with_target
@click.option(
    "--overlap", type=SpanParameter(), default="0s", help="Keep the old secret valid this long, such as 1h."
)
@json_option
def rotate(target: Target, *, name: str, overlap: float, as_json: bool) -> int:
    """Replace the secret of the key NAME and print it. The old one ends at once, or after the overlap."""
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
    """Revoke the key NAME at once."""
    with_backend(target, lambda backend: backend.revoke_key(name), lasting=True)
    if as_json:
        show_json({"name": name, "revoked": True})
    else:
        print_note(f"The key {name} is revoked.")
    _mention_running(target)
    return 0


def _show_key(made: JsonObject, target: Target, *, as_json: bool) -> None:
    """Print only the key on standard output, so that it can be redirected to a file."""
    if as_json:
        show_json(made)
    else:
        print_line(str(made["key"]))
    if in_terminal():
        print_note(f"This is the key {made['name']}. Store it now: it cannot be shown again.")
    _mention_running(target)


def _mention_running(target: Target) -> None:
    if target.url is None:
        print_note("A gateway on the same store applies this within seconds; with --url, at once.")


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
    """Return whether a key is valid, and how long the secret before it still is."""
    now = time()
    if key["revoked"] is not None:
        return "revoked"
    if key["expires"] is not None and key["expires"] <= now:
        return "expired"
    until = key["previousUntil"]
    return "live" if until is None or until <= now else f"live, old secret until {_format_moment(until)}"


def _format_moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


# --- `toolcrib link` ---

_LINK_NEEDS_TERMINAL = (
    "a sign-in link is printed only to a terminal, never to a pipe, a file or a log; "
    "run this command in a terminal (`ssh -t`, `docker exec -it`), or send POST /api/signin"
)


@click.command("link")
@with_running_gateway
def link(target: Target) -> int:
    """Print a link that signs you in to the web page of a running gateway, once, within 10 minutes.

    Without --url, it is the gateway that runs with the state in this folder, and its admin key is used. The
    page gets the permissions of the key that creates the link, and is signed out when that key is revoked.
    """
    if not may_show_secrets():
        raise click.UsageError(_LINK_NEEDS_TERMINAL)
    show_link(with_running_backend(target, lambda backend: backend.sign_in_link()))
    return 0
