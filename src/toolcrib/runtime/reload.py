"""Hot reload: apply the difference between two configs, on request or when the file changes."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from toolcrib.background_tasks import keep_running
from toolcrib.catalog import Catalog, PinMode
from toolcrib.config import ConfigError, ConfigFault, Document, reread
from toolcrib.config.sections import Sections
from toolcrib.egress import AddressRules
from toolcrib.errors import Refused, ToolcribError
from toolcrib.gateway import Gateway
from toolcrib.interfaces import ReloadPlan, ServerEntry, Store, StoredDefinition
from toolcrib.mcp.meta import gateways_of_process
from toolcrib.model import JsonObject
from toolcrib.observe import CallRecorder, Redactor
from toolcrib.policy import Contexts
from toolcrib.runtime.convert import contexts_of, overrides_of, rules_of
from toolcrib.runtime.sources import WantedServer, address_remarks, entries, pin_mode, remembered, wanted
from toolcrib.runtime.store_sync import StoreWriter
from toolcrib.sources.mcp.owner_connections import ConnectionQuota
from toolcrib.steps.breaker import Breaker
from toolcrib.supervisor import Supervisor

# --- Hot reload: computes the difference between the config in force and the new one, and applies it ---

log = logging.getLogger(__name__)

SETTLE_SECONDS = 5.0
"""Seconds a reload waits for the servers it has started, so that its result reports their state."""

_LIVE = frozenset({"contexts", "overrides", "pins", "allow_private"})
_MAX_ATTEMPTS = 3


def _ignore(plan: ReloadPlan) -> None:
    del plan


@dataclass(kw_only=True)
class Reloader:
    """Owns the config in force. Reloads are serialized by a lock; an invalid config changes nothing."""

    first: Document
    """The document the gateway was started with, without the run-time overlay."""
    document: Document
    env: Mapping[str, str]
    own: tuple[tuple[str, ...], tuple[str, ...]]
    """The ids of the sources that are not servers: those ordered before the servers, and those after."""
    catalog: Catalog
    contexts: Contexts
    gateway: Gateway
    supervisor: Supervisor
    breaker: Breaker
    store: Store
    redactor: Redactor
    rules: AddressRules
    """The rules that check app addresses; a reload updates them in place."""
    copies: ConnectionQuota = field(init=False)
    """Quota of extra stdio processes for callers that support elicitation, over all servers."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)

    def __post_init__(self) -> None:
        """Create the process quota, which is shared among principals like all other limits."""
        self.copies = ConnectionQuota(self.document.mcp.max_copies, self.document.limits.share)

    @property
    def enabled(self) -> bool:
        """Whether MCP servers are enabled."""
        return self.document.mcp.enabled

    @property
    def pins(self) -> Mapping[str, str]:
        """The approved definition hashes by tool name, from file and overlay."""
        return self.document.pins

    def servers(self) -> Mapping[str, ServerEntry]:
        """Every server of the config in force, by id."""
        return entries(self.document)

    def warnings(self) -> tuple[str, ...]:
        """The warnings about the config in force: its own, barred servers, and refused addresses."""
        barred = (
            f"mcp.servers.{name}: {entry.barred}" for name, entry in self.servers().items() if entry.barred
        )
        addresses = (f"mcp.servers.{name}: {remark}" for name, remark in address_remarks(self.document))
        return (*(str(each) for each in self.document.warnings), *barred, *addresses)

    async def start(self) -> None:
        """Add every server of the config, without waiting for any of them to start."""
        known = await self.store.definitions.all()
        self._run(wanted(self.document).values(), self.supervisor.add, known)

    async def reload(
        self, *, dry_run: bool = False, applied: Callable[[ReloadPlan], None] = _ignore
    ) -> ReloadPlan:
        """Read file and overlay again and apply the difference; an invalid config is rejected as a whole.

        `applied` is called once the change is in force; after that only starting servers are awaited.
        """
        async with self._lock:
            _, overlay = await self.store.overlay.load()
            document, stopped = await self._read(overlay), self._stopped()
            if dry_run:
                return self._plan(document, stopped)
            known = await self.store.definitions.all()
            plan = self._apply(document, known, stopped)
            applied(plan)
            return await self._settled(plan)

    async def amend(
        self, change: Callable[[JsonObject], JsonObject], applied: Callable[[ReloadPlan], None] = _ignore
    ) -> ReloadPlan:
        """Change the overlay and apply it; a change with an invalid result is not stored.

        The store compares versions (optimistic concurrency), so a conflicting change is retried a few times.
        """
        async with self._lock:
            for _ in range(_MAX_ATTEMPTS):
                version, overlay = await self.store.overlay.load()
                changed = change(overlay)
                document = await self._read(changed)
                self._refuse_barred(document, overlay)
                plan = await self._saved(document, changed, version)
                if plan is not None:
                    applied(plan)
                    return await self._settled(plan)
        raise Refused("IN_PROGRESS", "another operator is changing the config; try again", retry_after=1.0)

    async def _read(self, overlay: JsonObject) -> Document:
        try:
            # In a thread: parsing a large file would block the event loop.
            read = await to_thread.run_sync(
                partial(reread, self.first, env=self.env, overlay=overlay, in_force=self.document)
            )
            self._refuse_taken(read)
        except ConfigError as error:
            raise _refused(error) from None
        return placed(read, self.first)

    def _refuse_taken(self, document: Document) -> None:
        """Reject a server with the id of a module that the file no longer names but that still runs."""
        taken = [name for name in document.mcp.servers if name in (*self.own[0], *self.own[1])]
        fault = "is the id of a module under functions until the gateway is started again"
        if taken:
            raise ConfigError([ConfigFault(message=fault, where=("mcp", "servers", name)) for name in taken])

    async def _saved(self, document: Document, overlay: JsonObject, version: int) -> ReloadPlan | None:
        """Store the overlay if its version is unchanged, and apply it; None on a version conflict."""
        known = await self.store.definitions.all()
        # Shielded: the client may disconnect, but a stored change must also be applied.
        with anyio.CancelScope(shield=True):
            saved = await self.store.overlay.save(overlay, expected=version)
            return None if saved is None else self._apply(document, known)

    def _refuse_barred(self, document: Document, overlay: JsonObject) -> None:
        """Raise Refused if the change adds a barred server; servers that the overlay had before pass."""
        before = overlay.get("mcp", {}).get("servers", {})
        for name, entry in entries(document).items():
            if entry.barred and name not in before:
                part = "command" if entry.transport == "stdio" else "url"
                message = f"{name} cannot be added: {entry.barred}"
                raise Refused("PERMISSION_DENIED", message, path=f"mcp.servers.{name}.{part}")

    def _stopped(self) -> frozenset[str]:
        """Return the ids of stopped servers, which only an operator restarts."""
        return frozenset(state.id for state in self.supervisor.states() if state.state == "stopped")

    def _plan(self, document: Document, stopped: frozenset[str] = frozenset()) -> ReloadPlan:
        old, new = wanted(self.document), wanted(document)
        same = [name for name in old if old[name] == new.get(name) and name not in stopped]
        different = self._different(document)
        calls = {name: self.supervisor.in_flight(name) for name in old if name not in same}
        return ReloadPlan(
            added=tuple(name for name in new if name not in old),
            removed=tuple(name for name in old if name not in new),
            changed=tuple(name for name in old if name in new and name not in same),
            untouched=tuple(same),
            deferred={name: waiting for name, waiting in calls.items() if waiting},
            applied=tuple(name for name in different if name in _LIVE),
            restart=tuple(name for name in different if name not in _LIVE),
            warnings=tuple(str(each) for each in document.warnings),
        )

    def _different(self, document: Document) -> list[str]:
        """Return the names of the sections that differ from those in force."""
        now = {each.name: self.document if each.name in _LIVE else self.first for each in fields(Sections)}
        # Raw values are compared: the value in force may also come from the command line.
        names = {name for name, each in now.items() if document.raw.get(name) != each.raw.get(name)}
        before, after = pin_modes(self.document), pin_modes(document)
        if any(before[name] != after[name] for name in before.keys() & after.keys()):
            names.add("pins")
        return [name for name in now if name in names and name != "mcp"]

    def _apply(
        self, document: Document, known: Sequence[StoredDefinition], dead: frozenset[str] = frozenset()
    ) -> ReloadPlan:
        """Apply the difference atomically: without an `await`, cancellation cannot leave it half applied."""
        plan, servers = self._plan(document, dead), wanted(document)
        self.redactor.learn(*document.secret_texts)
        self.document = document
        self.copies.total = document.mcp.max_copies
        self.copies.notify_waiting()
        for name in plan.removed:
            self.supervisor.remove(name)
        self._adopt(document)
        for name in (*plan.removed, *plan.changed):
            self.breaker.forget(name)
        self._run((servers[name] for name in plan.changed), self.supervisor.replace, known)
        self._run((servers[name] for name in plan.added), self.supervisor.add, known)
        log.info("reloaded: %s", _told(plan))
        return plan

    async def _settled(self, plan: ReloadPlan) -> ReloadPlan:
        """Wait up to SETTLE_SECONDS for the servers that were started; add the calls still in flight."""
        await self.supervisor.settled(SETTLE_SECONDS, (*plan.added, *plan.changed))
        waiting = self.supervisor.retiring()
        return replace(plan, deferred={name: calls for name, calls in waiting.items() if calls})

    def _adopt(self, document: Document) -> None:
        """Apply all that is not a server: source order, overrides, pins, contexts and address rules."""
        before, after = self.own
        self.catalog.arrange((*before, *document.mcp.servers, *after), document.added)
        self.catalog.override(overrides_of(document))
        self.catalog.pin(document.pins, pin_modes(document))
        self.contexts.contexts = contexts_of(document)
        self.rules.adopt(rules_of(document))
        self.gateway.adopt(self.catalog.snapshot)

    def _run(
        self, servers: Iterable[WantedServer], run: Callable[..., object], known: Sequence[StoredDefinition]
    ) -> None:
        gateways = (*gateways_of_process(self.env), self.gateway.id)
        for each in servers:
            source = each.source(self.redactor.text, self.copies, gateways)
            run(source, each.upkeep, remembered=remembered(source, known))


def placed(document: Document, first: Document) -> Document:
    """Return the document with the server, store and auth sections of the first; they need a restart."""
    return replace(document, server=first.server, store=first.store, auth=first.auth)


def pin_modes(document: Document) -> dict[str, PinMode]:
    """Return the pin mode of each server: how a changed tool definition is handled."""
    servers = document.mcp.servers.items()
    return {name: pin_mode(server, added=name in document.added) for name, server in servers}


def _refused(error: ConfigError) -> Refused:
    faults = [
        {
            "where": fault.path,
            "message": fault.message,
            "file": fault.file,
            "line": None if fault.position is None else fault.position.line,
        }
        for fault in error.faults[:100]
    ]
    message = f"the config is refused, and the running one stays: {error}"
    return Refused("INVALID_REQUEST", message, details={"faults": faults})


def _told(plan: ReloadPlan) -> str:
    parts = ("added", "removed", "changed", "applied", "restart")
    said = [f"{name} {', '.join(getattr(plan, name))}" for name in parts if getattr(plan, name)]
    return "; ".join(said) or "nothing has changed"


# --- Builds the catalog from the name claims and tool definitions in the store ---


def watch_definition_changes(catalog: Catalog, journal: CallRecorder) -> None:
    """Export a counter of tool definitions that differ from the ones seen before."""
    what = "Definitions of tools that were another than the one seen before."
    journal.watch("definition_changes_total", "counter", what, catalog.definition_changes.total)


async def make_catalog(document: Document, order: Sequence[str], store: Store, tasks: TaskGroup) -> Catalog:
    """Build the catalog with sources in this order; new claims and definitions are written behind."""
    claims: StoreWriter[str] = StoreWriter("name claims", store.claims.put, store.claims.drop)
    definitions: StoreWriter[StoredDefinition] = StoreWriter(
        "definitions", lambda fresh: store.definitions.put(tuple(fresh.values())), store.definitions.drop
    )
    tasks.start_soon(keep_running, claims.run)
    tasks.start_soon(keep_running, definitions.run)
    catalog = Catalog(
        order,
        added=document.added,
        overrides=overrides_of(document),
        claims=await store.claims.all(),
        claimed=claims.note,
        known=await store.definitions.all(),
        seen=lambda fresh, stale: definitions.note({each.name: each for each in fresh}, stale),
    )
    catalog.pin(document.pins, pin_modes(document))
    return catalog


# --- Watches the config file by polling `stat`, and reloads it after a change ---

POLL_SECONDS = 0.5
"""Polling interval in seconds. A `stat` takes microseconds, so a file-watching library would gain nothing."""

Mark = tuple[int, int, int] | None


async def watch(path: Path, reload: Callable[[], Awaitable[object]]) -> None:
    """Reload after each change, debounced by one interval, until cancelled; a rejected file is logged."""
    served, seen = None, _mark(path)  # None: reload at first, it may have changed since it was loaded
    while True:
        await anyio.sleep(POLL_SECONDS)
        last, seen = seen, _mark(path)
        if seen is None or seen == served or seen != last:
            continue
        served = seen
        try:
            await reload()
        except ToolcribError as error:
            log.error("%s was changed, but %s", path, error)  # noqa: TRY400 - the traceback adds nothing
        except Exception:  # boundary: an unexpected failure of a reload must not stop the gateway
            log.exception("%s was changed, but the reload failed unexpectedly", path)


def _mark(path: Path) -> Mark:
    """Return a fingerprint of the file; it has the inode, since many editors replace a file on saving."""
    try:
        found = path.stat()
    except OSError:
        return None
    if not found.st_size:
        return None  # being written: many programs truncate a file first
    return found.st_mtime_ns, found.st_size, found.st_ino
