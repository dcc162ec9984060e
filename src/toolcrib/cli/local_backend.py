"""A gateway inside the command's own process, whose caller is the person who started it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from toolcrib.admin.app_admin import spell_app
from toolcrib.cli.backend import AuditFilters, OnProgress
from toolcrib.cli.command_line_actor import command_line
from toolcrib.cli.config_document import has_store, read_document, traceless
from toolcrib.cli.log_silencing import quiet
from toolcrib.cli.target import CallerView, Target
from toolcrib.crib import Crib
from toolcrib.errors import ToolcribError
from toolcrib.formats.rest import RestFormat, as_json
from toolcrib.model import JsonObject
from toolcrib.names import Style

_EVERY = 1_000_000


@asynccontextmanager
async def local_backend(place: Target, *, lasting: bool) -> AsyncGenerator["LocalBackend"]:
    """Run a gateway for as long as the block lasts; only `lasting` work makes a store where there is none."""
    document = read_document(place.config)
    with quiet(document):
        async with Crib(document=document if lasting else traceless(document), demo=place.demo) as crib:
            yield LocalBackend(crib)


def missing_store(place: Target) -> str | None:
    """Return the address of the store that a desk here would read, where nobody has made it."""
    document = read_document(place.config)
    return None if has_store(document) else document.store


class LocalBackend:
    """Hands requests to the two doors of a gateway in this process."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._actor = command_line(crib.caller())

    async def listing(
        self,
        view: CallerView,
        *,
        format: str | None = None,
        style: str | None = None,
        search: str | None = None,
    ) -> JsonObject:
        """List the tools."""
        await self._crib.meet(view.user)
        declared = self._crib.declared(
            context=view.context,
            user=view.user,
            format=format or "rest",
            style=cast("Style | None", style),
            search=search or "",
        )
        return declared.as_json()

    async def tools(self, view: CallerView) -> list[JsonObject]:
        """Return the tools that are listed."""
        return (await self.listing(view))["tools"]

    async def tool(self, name: str, view: CallerView) -> JsonObject | None:
        """Find one tool by any of its names."""
        gateway = self._crib.house.gateway
        try:
            caller = gateway.enter(await self._crib.meet(view.user), view.context)
            return RestFormat().tool(gateway.tool(name, caller), name)
        except ToolcribError:
            return None

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
        result = await self._crib.call(
            name,
            arguments,
            context=view.context,
            user=view.user,
            timeout=timeout,
            idempotency_key=idempotency_key,
            on_progress=on_progress,
        )
        return as_json(result)

    async def explain(self, name: str, view: CallerView) -> JsonObject:
        """Say why a tool may be used or not."""
        await self._crib.meet(view.user)
        return self._crib.explain(name, context=view.context, user=view.user)

    async def status(self) -> JsonObject:
        """Say what runs and what is wrong."""
        return self._crib.house.console.status()

    async def usage(self) -> JsonObject:
        """Say how much each tool was used, and how long it took."""
        return await self._crib.house.console.usage()

    async def keys(self) -> Sequence[JsonObject]:
        """List the keys."""
        return await self._crib.house.console.keys()

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
        console = self._crib.house.console
        return await console.create_key(
            name,
            permissions=permissions,
            contexts=contexts,
            home=home,
            act_as=act_as,
            user=user,
            expires=expires,
            actor=self._actor,
        )

    async def rotate_key(self, name: str, overlap: float) -> dict[str, Any]:
        """Put another key in place of one."""
        return await self._crib.house.console.rotate_key(name, overlap=overlap, actor=self._actor)

    async def revoke_key(self, name: str) -> None:
        """End a key."""
        await self._crib.house.console.revoke_key(name, actor=self._actor)

    async def audit(self, filters: AuditFilters) -> list[JsonObject]:
        """List audit records, the newest first."""
        return await self._crib.house.console.audit_records(**filters)

    async def pins(self) -> Sequence[JsonObject]:
        """List the tools whose definition is not the trusted one."""
        return self._crib.house.console.servers.pins()

    async def approve(self, name: str, seal: str | None) -> JsonObject:
        """Trust a tool's definition as it is now."""
        return await self._crib.house.console.servers.approve(name, seal, actor=self._actor)

    async def apps(self) -> Sequence[JsonObject]:
        """List the apps."""
        caller = self._crib.caller()
        return [spell_app(app, caller) for app in self._crib.house.console.apps.page(limit=_EVERY)]

    async def define_tools(self, package: str, tools: Sequence[JsonObject]) -> JsonObject:
        """Put these tools in the place of an app's."""
        return await self._crib.house.console.apps.define(package, list(tools), self._actor)
