"""Which gateway a command acts on: a running one by its address, or one of its own by its config."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

Command = Callable[..., int]

URL, KEY = "TOOLCRIB_URL", "TOOLCRIB_KEY"

config_option = click.option(
    "-c", "--config", metavar="FILE", help="The config file; else $TOOLCRIB_CONFIG, else ./toolcrib.yaml."
)
demo_option = click.option("--demo", is_flag=True, help="Add the tools of the demonstration.")
url_option = click.option(
    "--url",
    envvar=URL,
    show_envvar=True,
    help=f"Act on the running gateway there, with the key in ${KEY}.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where the gateway is."""

    config: str | None = None
    demo: bool = False
    url: str | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class CallerView:
    """As whom, and in which context, the gateway is looked at."""

    context: str | None = None
    user: str | None = None


def with_target(command: Command) -> Command:
    """Give a command the options that say where its gateway is."""

    @config_option
    @demo_option
    @url_option
    @wraps(command)
    def placed(config: str | None, url: str | None, *, demo: bool, **options: Any) -> int:
        return command(_place(config, url, demo=demo), **options)

    return placed


def with_running_gateway(command: Command) -> Command:
    """Give a command the options that say which running gateway it is for; without --url this machine's."""

    @config_option
    @url_option
    @wraps(command)
    def placed(config: str | None, url: str | None, **options: Any) -> int:
        return command(_place(config, url, demo=False), **options)

    return placed


def with_view(command: Command) -> Command:
    """Give a command the options that say who is looking."""

    @click.option("--context", metavar="NAME", help="Look from this context.")
    @click.option("--user", metavar="ID", help="Act for this user.")
    @wraps(command)
    def viewed(place: Target, context: str | None, user: str | None, **options: Any) -> int:
        if user is not None and not (user and user.isprintable()):
            raise click.UsageError("--user must be printable text")
        return command(place, CallerView(context=context, user=user), **options)

    return viewed


def _place(config: str | None, url: str | None, *, demo: bool) -> Target:
    here = config is not None or demo
    if url and here:
        if click.get_current_context().get_parameter_source("url") is ParameterSource.COMMANDLINE:
            raise click.UsageError("--url is a running gateway, -c and --demo make one: choose")
        url = None
    if not url:
        return Target(config=config, demo=demo)
    return Target(url=_checked(url), key=given_key())


def _checked(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        parts, usable = None, False
    if parts is None or not usable or parts.username or parts.query or parts.fragment:
        raise click.UsageError("--url must be the address of a gateway, such as http://127.0.0.1:6740")
    return url.rstrip("/")


def given_key() -> str:
    """Return the key in the environment; refuse to go on without one."""
    key = os.environ.get(KEY, "").strip()
    if key and key.isascii() and key.isprintable():
        return key
    example = f"export {KEY}=$(cat .toolcrib/admin.key)"
    raise click.UsageError(f"a running gateway wants an API key: put one in ${KEY}, such as {example}")
