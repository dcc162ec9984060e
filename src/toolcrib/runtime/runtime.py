"""Composition root: builds a gateway from its document and runs it."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial

from anyio.abc import TaskGroup

from toolcrib.admin import Admin, AppAdmin, ServerAdmin, UserAdmin
from toolcrib.background_tasks import background_tasks, keep_running
from toolcrib.builtin import AdminTools, builtin_source
from toolcrib.catalog import MAX_CATALOG_TOOLS, Catalog
from toolcrib.config import Document, home, reread
from toolcrib.config.open_store import open_store_of
from toolcrib.config.secrets import audited_server
from toolcrib.gateway import Completion, Gateway, ProcessSlots, StateSigner, SuspensionLimits
from toolcrib.http.memory import LargeResults
from toolcrib.identity import FailedLogins, Identity
from toolcrib.interfaces import Shared, Source, Step, Store
from toolcrib.model import APPS, FILE_WATCH, Origin, Tool
from toolcrib.observe import (
    Audit,
    CallRecorder,
    Log,
    Metrics,
    MutationRows,
    RecentCalls,
    Redactor,
    Sequences,
    Sink,
    UsageTally,
)
from toolcrib.policy import Contexts, Policy
from toolcrib.runtime.app_runtime import AppRuntime, DemoApps, ToolEvents, make_app_runtime, rereading
from toolcrib.runtime.convert import contexts_of, quota_of
from toolcrib.runtime.gateway import EnergyBudget, make_gateway, make_policy, own_id
from toolcrib.runtime.identity import make_identity
from toolcrib.runtime.reload import Reloader, make_catalog, placed, watch, watch_definition_changes
from toolcrib.runtime.sources import ids, our_sources, own_sources
from toolcrib.runtime.step_order import forget_gone, order
from toolcrib.runtime.store_sync import StoreWatch, forget_replays
from toolcrib.runtime.traces import exporting
from toolcrib.sdk import AnyTool
from toolcrib.sessions import UserSessions
from toolcrib.steps.breaker import Breaker
from toolcrib.steps.replay import Replay
from toolcrib.store.holder import is_gone, new_process_mark
from toolcrib.store.shared import open_shared
from toolcrib.supervisor import Supervisor

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """A running gateway: its interfaces for callers and operators, authentication, sessions, and document."""

    document: Document
    gateway: Gateway
    console: Admin
    identity: Identity
    failed_logins: FailedLogins
    sessions: UserSessions
    """The active users and the sessions of their apps."""
    large_results: LargeResults
    """Reserves memory for large results, as soon as an HTTP server attaches a memory limit."""
    demonstration: DemoApps | None = None

    async def listens(self, address: str) -> None:
        """Set the address of the gateway, to which apps connect back; start the demo apps, if any."""
        self.sessions.address = address
        if self.demonstration is not None:
            await self.demonstration.start()

    def secret(self, purpose: str) -> bytes:
        """Return a secret derived for a purpose; it is equal on every replica and after a restart."""
        return self.identity.secret(purpose)

    async def settled(self, within: float) -> bool:
        """Wait up to `within` seconds until every source is up, idle or failed; return whether all are."""
        return await self.console.supervisor.settled(within)


@asynccontextmanager
async def build(
    document: Document,
    *,
    env: Mapping[str, str],
    tools: Sequence[AnyTool] = (),
    demo: bool = False,
    journal_to: Log | None = None,
    redactor: Redactor | None = None,
) -> AsyncGenerator[Runtime, None]:
    """Build a gateway from its document and run it until the block ends.

    `tools` are served in addition to those the document names. `demo` adds the demo tools and apps. Every
    call is written to `journal_to`, if given. MCP servers are started but not awaited.
    """
    async with AsyncExitStack() as stack:
        store, shared = await open_store_of(document, env), open_shared(document.shared)
        stack.push_async_callback(store.close)
        stack.push_async_callback(shared.close)
        _, overlay = await store.overlay.load()
        current = placed(reread(document, env=env, overlay=overlay), document) if overlay else document
        (redactor := redactor or Redactor()).learn(*current.secret_texts)
        spans = await stack.enter_async_context(exporting(current, env, redactor))
        parts = _Parts(
            first=document,
            document=current,
            env=env,
            store=store,
            shared=shared,
            room=await stack.enter_async_context(make_app_runtime(current, store)),
            tasks=await stack.enter_async_context(background_tasks()),
            demo=demo,
            before=own_sources(document, tools),
            after=our_sources(document, home(env), demo=demo),
            redactor=redactor,
            wants=None if spans is None else spans.sampler,
            gateway_id=await own_id(store, env),
        )
        house = await parts.assemble([sink for sink in (journal_to, spans) if sink is not None])
        stack.push_async_callback(house.gateway.close)
        yield house


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """The dependencies from which the runtime is assembled."""

    first: Document
    document: Document
    env: Mapping[str, str]
    store: Store
    shared: Shared
    tasks: TaskGroup
    room: AppRuntime
    demo: bool
    before: tuple[Source, ...]
    after: tuple[Source, ...]
    redactor: Redactor
    wants: Callable[[Origin], bool] | None
    gateway_id: str

    @cached_property
    def audit(self) -> Audit:
        return Audit(self.store.audit, self.redactor)

    @cached_property
    def large_results(self) -> LargeResults:
        return LargeResults(self.document.limits.share)

    @cached_property
    def suspensions(self) -> SuspensionLimits:
        limits = self.document.limits
        return SuspensionLimits(limits.parked, limits.parked_per_user, limits.share, limits.parked_ms / 1000)

    @cached_property
    def admin_tools(self) -> AdminTools:
        return AdminTools(self.audit)

    async def assemble(self, sinks: Sequence[Sink]) -> Runtime:
        """Wire all components together and start the background tasks."""
        document, store = self.document, self.store
        catalog, breaker, sequences = await self._catalog(), Breaker(), Sequences()
        supervisor = Supervisor(catalog, reconnected=breaker.forget)
        metrics = Metrics(document.metrics.prefix, sources=supervisor.states, parked=self.suspensions.waiting)
        journal = CallRecorder(metrics, (*sinks, *self._sinks(), sequences))
        contexts = Contexts(contexts_of(document))
        budget = EnergyBudget.of(document, contexts, self.shared)
        steps = self._steps(journal, supervisor, breaker, budget)
        policy = make_policy(document, contexts, budget)
        identity, read_keys = await self._identity()
        gateway = self._gateway(
            policy, contexts, steps, supervisor, journal, sequences=sequences, identity=identity
        )
        catalog.listen(gateway.adopt)
        catalog.listen(partial(forget_gone, steps))
        self.shared.listen("users", lambda change: gateway.user_changed(change.about))
        config = self._config(catalog, contexts, gateway, supervisor, breaker)
        console = Admin(
            gateway=gateway,
            catalog=catalog,
            policy=policy,
            contexts=contexts,
            steps=steps,
            supervisor=supervisor,
            servers=self._servers(catalog, supervisor, breaker, config),
            store=store,
            shared=self.shared,
            read_keys=read_keys,
            audit=self.audit,
            journal=journal,
            learn=self.redactor.learn,
            apps=self._app_desk(supervisor, catalog),
            users=self._user_desk(catalog, policy),
        )
        await self.tasks.start(journal.run)
        await self._start(supervisor, config, console, budget)
        return self._house(console, identity)

    def _house(self, console: Admin, identity: Identity) -> Runtime:
        failed_logins = FailedLogins(self.audit)
        self.tasks.start_soon(keep_running, failed_logins.run)
        shown = DemoApps(room=self.room, store=self.store, shared=self.shared, tasks=self.tasks)
        return Runtime(
            document=self.document,
            gateway=console.gateway,
            console=console,
            identity=identity,
            failed_logins=failed_logins,
            sessions=self.room.sessions,
            large_results=self.large_results,
            demonstration=shown if self.demo else None,
        )

    def _steps(
        self, journal: CallRecorder, supervisor: Supervisor, breaker: Breaker, budget: EnergyBudget
    ) -> tuple[Step, ...]:
        return order(
            self.document,
            journal,
            self.shared,
            supervisor,
            breaker,
            replay=self._replay(),
            ready=self.room.sessions.ready,
            silent=budget.silent,
            spend=budget.spend(),
            large_results=self.large_results,
            wants=self.wants,
        )

    def _replay(self) -> Replay:
        store = self.store
        quota = quota_of(self.document)
        replay = Replay(store.replays, new_process_mark(), is_gone, lambda: store.refused, store.clock, quota)
        self.tasks.start_soon(keep_running, replay.endings.run)
        self.tasks.start_soon(keep_running, forget_replays, replay.bounded)
        return replay

    def _gateway(
        self,
        policy: Policy,
        contexts: Contexts,
        steps: Sequence[Step],
        supervisor: Supervisor,
        journal: CallRecorder,
        *,
        sequences: Sequences,
        identity: Identity,
    ) -> Gateway:
        limits = self.document.limits
        return make_gateway(
            policy,
            contexts,
            steps,
            supervisor,
            journal,
            completion=Completion(journal.history.rate, sequences.followers, journal.history.tried),
            people=self.room.people,
            admin=self.admin_tools,
            slots=ProcessSlots(limits.process, limits.share),
            state_signer=StateSigner(partial(identity.secret, "states of calls"), self.store.clock.now),
            suspension_limits=self.suspensions,
            learned=sequences.steps,
            id=self.gateway_id,
        )

    def _servers(
        self, catalog: Catalog, supervisor: Supervisor, breaker: Breaker, config: Reloader
    ) -> ServerAdmin:
        return ServerAdmin(
            catalog=catalog,
            supervisor=supervisor,
            breaker=breaker,
            config=config,
            audit=self.audit,
            audited=audited_server,
        )

    def _sinks(self) -> tuple[Sink, ...]:
        store = self.store
        return (
            UsageTally(store.usage),
            RecentCalls(store.calls),
            MutationRows(store.calls),
            ToolEvents(self.room.sessions, self.room.use),
        )

    def _app_desk(self, supervisor: Supervisor, catalog: Catalog) -> AppAdmin:
        room = self.room
        return AppAdmin(
            store=self.store,
            shared=self.shared,
            refresh=room.source.refresh,
            find=room.source.find,
            sessions=room.sessions,
            rules=room.rules,
            taken=lambda package: any(each.id == package for each in supervisor.states()),
            served=room.source.apps,
            room=lambda: MAX_CATALOG_TOOLS - len(catalog.snapshot.tools),
            audit=self.audit,
        )

    def _user_desk(self, catalog: Catalog, policy: Policy) -> UserAdmin:
        room = self.room

        def named(name: str) -> Sequence[Tool]:
            return catalog.snapshot.find(name)

        return UserAdmin(
            store=self.store,
            shared=self.shared,
            sessions=room.sessions,
            find=room.source.find,
            named=named,
            policy=policy,
            audit=self.audit,
            phone_microphone=self.document.apps.phone_microphone,
            use=room.use.note,
        )

    def _config(
        self, catalog: Catalog, contexts: Contexts, gateway: Gateway, supervisor: Supervisor, breaker: Breaker
    ) -> Reloader:
        return Reloader(
            first=self.first,
            document=self.document,
            env=self.env,
            own=(ids(self.before), (*ids(self.after), "crib", APPS)),
            catalog=catalog,
            contexts=contexts,
            gateway=gateway,
            supervisor=supervisor,
            breaker=breaker,
            store=self.store,
            redactor=self.redactor,
            rules=self.room.rules,
        )

    async def _start(
        self, supervisor: Supervisor, config: Reloader, console: Admin, budget: EnergyBudget
    ) -> None:
        watch_definition_changes(console.catalog, console.journal)
        budget.meter.listen(console.gateway.caller_changed)
        self.tasks.start_soon(keep_running, budget.meter.run)
        core = builtin_source(console.servers, console.gateway, budget.meter, self.admin_tools)
        room = self.room
        for source in (*self.before, *self.after, core, room.source):
            supervisor.add(source)
        await config.start()
        await self.tasks.start(room.sessions.run)
        await supervisor.start(self.tasks)
        self._watch("apps", rereading(self.store.apps.mark, room.reread))
        self.tasks.start_soon(keep_running, self.store.watch)
        self.tasks.start_soon(keep_running, room.use.run, console.users.end_unused)
        path = self.document.source
        if path is not None and self.document.reload.watch:
            self.tasks.start_soon(
                keep_running, watch, path, partial(console.servers.reload, actor=FILE_WATCH)
            )

    def _watch(self, what: str, look: Callable[[], Awaitable[None]]) -> None:
        watching = StoreWatch(what, look)
        self.shared.listen(what, watching.hear)
        self.tasks.start_soon(keep_running, watching.run)

    async def _catalog(self) -> Catalog:
        document = self.document
        order = (*ids(self.before), *document.mcp.servers, *ids(self.after), "crib", APPS)
        return await make_catalog(document, order, self.store, self.tasks)

    async def _identity(self) -> tuple[Identity, Callable[[], Awaitable[None]]]:
        people = self.room.people
        identity, read_keys = await make_identity(
            self.document, self.env, self.store, people=people, redactor=self.redactor, tasks=self.tasks
        )
        self._watch("keys", read_keys)
        self.shared.listen("users", lambda change: people.forget(change.about))
        return identity, read_keys
