"""What commands ask of a gateway, whether it runs in this process or elsewhere."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypedDict, TypeVar

from toolcrib.cli import startup_gc
from toolcrib.cli.target import CallerView, Target
from toolcrib.model import JsonObject, Progress

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


def with_backend(place: Target, work: Callable[[Backend], Awaitable[T]], *, lasting: bool = False) -> T:
    """Open the desk of a place and do some work there; `lasting` work leaves something in the store."""
    import anyio

    async def run() -> T:
        async with _desk(place, lasting=lasting) as desk:
            startup_gc.done()
            return await work(desk)

    return anyio.run(run)


def _desk(place: Target, *, lasting: bool) -> AbstractAsyncContextManager[Any]:
    if place.url is not None and place.key is not None:
        from toolcrib.cli.remote_backend import remote_backend

        return remote_backend(place.url, place.key)
    from toolcrib.cli.local_backend import local_backend

    return local_backend(place, lasting=lasting)
