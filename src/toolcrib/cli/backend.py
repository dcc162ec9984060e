"""How a command reaches a gateway: target options, and the interface of the local and remote backend."""

import getpass
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Protocol, TypedDict, TypeVar

import click
from click.core import ParameterSource

from toolcrib.cli import startup_gc
from toolcrib.model import Actor, Caller, JsonObject, Progress

# --- The person at the command line, as the audit names them ---

_LOCAL_CALLER = Caller(id="local", key="local", permissions=frozenset({"*"}))


def command_line(caller: Caller = _LOCAL_CALLER) -> Actor:
    """Return the actor of a command that works in its own process: the operating system's user."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name, as in some containers
        name = ""
    return Actor(kind="command_line", name=name, caller=caller, frontend="cli")


# --- Which gateway a command acts on: a running one by its address, or one of its own by its config ---

Command = Callable[..., int]

URL_VARIABLE, KEY_VARIABLE = "TOOLCRIB_URL", "TOOLCRIB_KEY"

config_option = click.option(
    "-c", "--config", metavar="FILE", help="The config file; else $TOOLCRIB_CONFIG, else ./toolcrib.yaml."
)
demo_option = click.option("--demo", is_flag=True, help="Add the tools of the demonstration.")
url_option = click.option(
    "--url",
    envvar=URL_VARIABLE,
    show_envvar=True,
    help=f"Act on the running gateway there, with the key in ${KEY_VARIABLE}.",
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
        return command(_make_target(config, url, demo=demo), **options)

    return placed


def with_running_gateway(command: Command) -> Command:
    """Give a command the options that say which running gateway it is for; without --url this machine's."""

    @config_option
    @url_option
    @wraps(command)
    def placed(config: str | None, url: str | None, **options: Any) -> int:
        return command(_make_target(config, url, demo=False), **options)

    return placed


def with_view(command: Command) -> Command:
    """Give a command the options that say who is looking."""

    @click.option("--context", metavar="NAME", help="Look from this context.")
    @click.option("--user", metavar="ID", help="Act for this user.")
    @wraps(command)
    def viewed(target: Target, context: str | None, user: str | None, **options: Any) -> int:
        if user is not None and not (user and user.isprintable()):
            raise click.UsageError("--user must be printable text")
        return command(target, CallerView(context=context, user=user), **options)

    return viewed


def _make_target(config: str | None, url: str | None, *, demo: bool) -> Target:
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
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key and key.isascii() and key.isprintable():
        return key
    example = f"export {KEY_VARIABLE}=$(cat .toolcrib/admin.key)"
    raise click.UsageError(
        f"a running gateway wants an API key: put one in ${KEY_VARIABLE}, such as {example}"
    )


# --- What commands ask of a gateway, whether it runs in this process or elsewhere ---

T = TypeVar("T")
OnProgress = Callable[[Progress], None]


class AuditFilters(TypedDict, total=False):
    """Which audit records are listed."""

    limit: int
    before: int | None
    actor: str | None
    action: str | None
    since: float | None


class Backend(Protocol):
    """Where requests are handed in. Answers are spelled as REST spells them; a refusal is a ToolcribError."""

    async def listing(
        self,
        view: CallerView,
        *,
        format: str | None = None,
        style: str | None = None,
        search: str | None = None,
    ) -> JsonObject:
        """List the tools, and say how many were cut and which are withheld, where some are."""
        ...

    async def tools(self, view: CallerView) -> list[JsonObject]:
        """Return the tools that are listed."""
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
        """Call a tool; how it ends is in the answer."""
        ...

    async def explain(self, name: str, view: CallerView) -> JsonObject:
        """Say why a tool may be used or not."""
        ...

    async def status(self) -> JsonObject:
        """Say what runs and what is wrong."""
        ...

    async def usage(self) -> JsonObject:
        """Say how much each tool was used, and how long it took."""
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
        """Make a key."""
        ...

    async def rotate_key(self, name: str, overlap: float) -> JsonObject:
        """Put another key in place of one."""
        ...

    async def revoke_key(self, name: str) -> None:
        """End a key."""
        ...

    async def audit(self, filters: AuditFilters) -> list[JsonObject]:
        """List audit records, the newest first."""
        ...

    async def pins(self) -> Sequence[JsonObject]:
        """List the tools whose definition is not the trusted one."""
        ...

    async def approve(self, name: str, seal: str | None) -> JsonObject:
        """Trust a tool's definition as it is now; with a seal, only if it is still that one."""
        ...

    async def apps(self) -> Sequence[JsonObject]:
        """List the apps."""
        ...

    async def define_tools(self, package: str, tools: Sequence[JsonObject]) -> JsonObject:
        """Put these tools in the place of an app's."""
        ...


def with_backend(target: Target, work: Callable[[Backend], Awaitable[T]], *, lasting: bool = False) -> T:
    """Open the desk of a place and do some work there; `lasting` work leaves something in the store."""
    import anyio

    async def run() -> T:
        async with _open_backend(target, lasting=lasting) as backend:
            startup_gc.resume_collector()
            return await work(backend)

    return anyio.run(run)


def _open_backend(target: Target, *, lasting: bool) -> AbstractAsyncContextManager[Any]:
    if target.url is not None and target.key is not None:
        from toolcrib.cli.remote_backend import remote_backend

        return remote_backend(target.url, target.key)
    from toolcrib.cli.local_backend import local_backend

    return local_backend(target, lasting=lasting)
