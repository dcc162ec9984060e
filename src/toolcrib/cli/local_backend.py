"""The local backend: a command's own gateway, with its config and its silenced log."""

import logging
import os
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from toolcrib.admin.app_admin import spell_app
from toolcrib.cli.backend import AuditFilters, CallerView, OnProgress, Target, command_line
from toolcrib.cli.error_output import DEBUG_VARIABLE
from toolcrib.config import Document, find, load
from toolcrib.crib import Crib
from toolcrib.errors import ToolcribError
from toolcrib.formats.rest import RestFormat, as_json
from toolcrib.model import JsonObject
from toolcrib.names import Style
from toolcrib.observe import Redactor
from toolcrib.observe.log import setup

# --- The config of a command, and whether its store exists ---

_SQLITE_PREFIX = "sqlite:///"
IN_MEMORY = "sqlite://"


def read_document(config: str | None) -> Document:
    """Read the config file in force here, or return the default config."""
    return load(find(config, os.environ), env=os.environ)


def has_store(document: Document) -> bool:
    """Whether the store exists; a database server counts as existing."""
    return (
        not document.store.startswith(_SQLITE_PREFIX) or Path(document.store[len(_SQLITE_PREFIX) :]).exists()
    )


def without_new_store(document: Document) -> Document:
    """Return the document with a store in memory if none exists, so that a read-only command creates none."""
    return document if has_store(document) else replace(document, store=IN_MEMORY)


async def with_overlay(document: Document, *, action: str | None = None) -> Document:
    """Return the document merged with the run-time changes in its store, if it exists.

    An `action` is recorded in the store's audit.
    """
    if not has_store(document):
        return document
    from toolcrib.cli.backend import command_line
    from toolcrib.config.open_store import open_store_of
    from toolcrib.observe import Action, Audit, Redactor

    store = await open_store_of(document, os.environ)
    try:
        version, overlay = await store.overlay.load()
        if action is not None:
            await Audit(store.audit, Redactor(document.secret_texts)).record(command_line(), action, Action())
    finally:
        await store.close()
    return load(document.source, env=os.environ, overlay=overlay) if version else document


# --- Logging: silent, unless $TOOLCRIB_DEBUG is set ---


@contextmanager
def silenced_log(document: Document) -> Generator[None]:
    """Discard log messages; with $TOOLCRIB_DEBUG write all of them to standard error."""
    if os.environ.get(DEBUG_VARIABLE):
        log = setup("debug", None, Redactor(document.secret_texts), style="text")
        try:
            yield
        finally:
            log.close()
        return
    discard = logging.NullHandler()
    logging.getLogger().addHandler(discard)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(discard)


# --- The gateway in the command's own process ---

_MAX_APPS = 1_000_000


@asynccontextmanager
async def local_backend(target: Target, *, lasting: bool) -> AsyncGenerator["LocalBackend"]:
    """Run a gateway while the block runs; only for `lasting` work it creates a missing store."""
    document = read_document(target.config)
    with silenced_log(document):
        async with Crib(
            document=document if lasting else without_new_store(document), demo=target.demo
        ) as crib:
            yield LocalBackend(crib)


def missing_store(target: Target) -> str | None:
    """Return the address of the config's store if it does not exist, else None."""
    document = read_document(target.config)
    return None if has_store(document) else document.store


class LocalBackend:
    """The `Backend` that calls the gateway and the admin API in this process."""

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
        return (await self.listing(view))["tools"]

    async def tool(self, name: str, view: CallerView) -> JsonObject | None:
        gateway = self._crib.runtime.gateway
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
        await self._crib.meet(view.user)
        return self._crib.explain(name, context=view.context, user=view.user)

    async def status(self) -> JsonObject:
        return self._crib.runtime.console.status()

    async def usage(self) -> JsonObject:
        return await self._crib.runtime.console.usage()

    async def keys(self) -> Sequence[JsonObject]:
        return await self._crib.runtime.console.keys()

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
        console = self._crib.runtime.console
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
        return await self._crib.runtime.console.rotate_key(name, overlap=overlap, actor=self._actor)

    async def revoke_key(self, name: str) -> None:
        await self._crib.runtime.console.revoke_key(name, actor=self._actor)

    async def audit(self, filters: AuditFilters) -> list[JsonObject]:
        return await self._crib.runtime.console.audit_records(**filters)

    async def pins(self) -> Sequence[JsonObject]:
        return self._crib.runtime.console.servers.pins()

    async def approve(self, name: str, seal: str | None) -> JsonObject:
        return await self._crib.runtime.console.servers.approve(name, seal, actor=self._actor)

    async def apps(self) -> Sequence[JsonObject]:
        caller = self._crib.caller()
        return [spell_app(app, caller) for app in self._crib.runtime.console.apps.page(limit=_MAX_APPS)]

    async def define_tools(self, package: str, tools: Sequence[JsonObject]) -> JsonObject:
        return await self._crib.runtime.console.apps.define(package, list(tools), self._actor)
