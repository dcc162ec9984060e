"""Target options of commands, and the interface of the local and the remote backend."""

import getpass
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Protocol, TypedDict, TypeVar

import click
from click.core import ParameterSource

from toolcrib.cli import resume_collector
from toolcrib.model import Actor, Caller, JsonObject, Progress

# --- The actor in audit records of commands ---

_LOCAL_CALLER = Caller(id="local", key="local", permissions=frozenset({"*"}))


def command_line(caller: Caller = _LOCAL_CALLER) -> Actor:
    """Return the actor of a command that runs its own gateway: the operating system's user."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # some containers run as a user id without a name
        name = ""
    return Actor(kind="command_line", name=name, caller=caller, frontend="cli")


# --- Options that select a gateway: a running one by its URL, or one in this process by its config ---

Command = Callable[..., int]

URL_VARIABLE, KEY_VARIABLE = "TOOLCRIB_URL", "TOOLCRIB_KEY"

config_option = click.option(
    "-c", "--config", metavar="FILE", help="Config file. Default: $TOOLCRIB_CONFIG, else ./toolcrib.yaml."
)
demo_option = click.option("--demo", is_flag=True, help="Add the demo tools and apps.")
url_option = click.option(
    "--url",
    envvar=URL_VARIABLE,
    show_envvar=True,
    help=f"Use the running gateway at this URL, with the API key in ${KEY_VARIABLE}.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@dataclass(frozen=True, kw_only=True)
class Target:
    """The gateway that a command uses."""

    config: str | None = None
    demo: bool = False
    url: str | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class CallerView:
    """The user and the context that tools are listed and called for."""

    context: str | None = None
    user: str | None = None


def with_target(command: Command) -> Command:
    """Add the options that select a gateway."""

    @config_option
    @demo_option
    @url_option
    @wraps(command)
    def with_target_option(config: str | None, url: str | None, *, demo: bool, **options: Any) -> int:
        return command(_make_target(config, url, demo=demo), **options)

    return with_target_option


def with_running_gateway(command: Command) -> Command:
    """Add the options that select a running gateway; without --url it is the one of this config."""

    @config_option
    @url_option
    @wraps(command)
    def with_target_option(config: str | None, url: str | None, **options: Any) -> int:
        return command(_make_target(config, url, demo=False), **options)

    return with_target_option


def with_view(command: Command) -> Command:
    """Add the options for the user and the context."""

    @click.option("--context", metavar="NAME", help="Use this context.")
    @click.option("--user", metavar="ID", help="Act for this user.")
    @wraps(command)
    def with_view_option(target: Target, context: str | None, user: str | None, **options: Any) -> int:
        if user is not None and not (user and user.isprintable()):
            raise click.UsageError("--user must be printable text")
        return command(target, CallerView(context=context, user=user), **options)

    return with_view_option


def _make_target(config: str | None, url: str | None, *, demo: bool) -> Target:
    own_process = config is not None or demo
    if url and own_process:
        if click.get_current_context().get_parameter_source("url") is ParameterSource.COMMANDLINE:
            raise click.UsageError("give either --url, for a running gateway, or -c or --demo, to start one")
        url = None
    if not url:
        return Target(config=config, demo=demo)
    return Target(url=_checked_url(url), key=given_key())


def _checked_url(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        parts, usable = None, False
    if parts is None or not usable or parts.username or parts.query or parts.fragment:
        raise click.UsageError("--url must be the URL of a gateway, such as http://127.0.0.1:6740")
    return url.rstrip("/")


def given_key() -> str:
    """Return the API key in the environment; raises UsageError if there is none."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key and key.isascii() and key.isprintable():
        return key
    example = f"export {KEY_VARIABLE}=$(cat .toolcrib/admin.key)"
    raise click.UsageError(
        f"a running gateway requires an API key in ${KEY_VARIABLE}, for example: {example}"
    )


# --- The operations of a gateway, in this process or remote ---

T = TypeVar("T")
OnProgress = Callable[[Progress], None]


class AuditFilters(TypedDict, total=False):
    """Filters of the list of audit records."""

    limit: int
    before: int | None
    actor: str | None
    action: str | None
    since: float | None


class Backend(Protocol):
    """Operations of a gateway. Results have the REST format; errors are raised as ToolcribError."""

    async def listing(
        self,
        view: CallerView,
        *,
        format: str | None = None,
        style: str | None = None,
        search: str | None = None,
    ) -> JsonObject:
        """List the tools, with the number of tools cut from the list, and those withheld from it."""
        ...

    async def tools(self, view: CallerView) -> list[JsonObject]:
        """Return the listed tools."""
        ...

    async def tool(self, name: str, view: CallerView) -> JsonObject | None:
        """Find one tool by any of its names."""
        ...

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        view: CallerView,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> JsonObject:
        """Call a tool; a failed call is returned, not raised."""
        ...

    async def explain(self, name: str, view: CallerView) -> JsonObject:
        """Explain why a tool may be used or not."""
        ...

    async def status(self) -> JsonObject:
        """Return the status of sources, and the warnings."""
        ...

    async def usage(self) -> JsonObject:
        """Return the calls and durations of each tool."""
        ...

    async def keys(self) -> Sequence[JsonObject]:
        """List the keys."""
        ...

    async def create_key(
        self,
        name: str,
        *,
        permissions: Sequence[str],
        contexts: Sequence[str] | None,
        home: str,
        act_as: bool,
        user: str | None,
        expires: float | None,
    ) -> JsonObject:
        """Create a key."""
        ...

    async def rotate_key(self, name: str, overlap: float) -> JsonObject:
        """Replace the secret of a key."""
        ...

    async def revoke_key(self, name: str) -> None:
        """Revoke a key."""
        ...

    async def audit(self, filters: AuditFilters) -> list[JsonObject]:
        """List audit records, newest first."""
        ...

    async def pins(self) -> Sequence[JsonObject]:
        """List the tools whose definition differs from the trusted one."""
        ...

    async def approve(self, name: str, seal: str | None) -> JsonObject:
        """Trust the current definition of a tool; with a hash, only if it is still that one."""
        ...

    async def apps(self) -> Sequence[JsonObject]:
        """List the apps."""
        ...

    async def define_tools(self, package: str, tools: Sequence[JsonObject]) -> JsonObject:
        """Replace the tools of an app."""
        ...


def with_backend(target: Target, work: Callable[[Backend], Awaitable[T]], *, lasting: bool = False) -> T:
    """Open the backend of a target and run `work` with it; `lasting` work may create a store."""
    import anyio

    async def run() -> T:
        async with _open_backend(target, lasting=lasting) as backend:
            resume_collector()
            return await work(backend)

    return anyio.run(run)


def _open_backend(target: Target, *, lasting: bool) -> AbstractAsyncContextManager[Any]:
    if target.url is not None and target.key is not None:
        from toolcrib.cli.remote_backend import remote_backend

        return remote_backend(target.url, target.key)
    from toolcrib.cli.local_backend import local_backend

    return local_backend(target, lasting=lasting)
