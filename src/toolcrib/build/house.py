"""Puts a gateway together from its document and runs it."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.abc import TaskGroup

from toolcrib.build.apps import AppRoom, ToolEvents, app_room, rereading
from toolcrib.build.budget import Budget
from toolcrib.build.convert import contexts_of, overrides_of
from toolcrib.build.demo import Demonstration
from toolcrib.build.keepers import Keeper, Watch, forget_replays
from toolcrib.build.order import order
from toolcrib.build.reload import Reloader, pin_modes, placed
from toolcrib.build.sources import ids, our_sources, own_sources
from toolcrib.build.traces import exporting
from toolcrib.build.watch import watch
from toolcrib.catalog import MOST_TOOLS, Catalog
from toolcrib.config import Document, again, home
from toolcrib.console import AppDesk, Console, Servers, UserDesk
from toolcrib.core import core_source
from toolcrib.gateway import Completion, Conversations, Gateway, Places, Seal
from toolcrib.identity import Anonymous, Identity, KeyRing, People, TrustHeader, admin_key, new_key
from toolcrib.interfaces import Definition, Handler, Shared, Source, Step, Store
from toolcrib.model import APPS, Origin, Tool
from toolcrib.observe import (
    Journal,
    Log,
    Metrics,
    RecentCalls,
    Redactor,
    Sequences,
    Sink,
    UsageTally,
    new_id,
)
from toolcrib.pipeline import compose
from toolcrib.policy import Contexts, Disabled, Hardware, Installed, Permissions, Pinned, Policy, Removed
from toolcrib.sdk import AnyTool
from toolcrib.sessions import Sessions
from toolcrib.steps.breaker import Breaker
from toolcrib.steps.replay import Replay
from toolcrib.store import open_store
from toolcrib.store.holder import is_gone, new_mark
from toolcrib.store.shared import open_shared
from toolcrib.supervisor import Supervisor

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class House:
    """A running gateway: its two doors, who may come in, and the document it was built from."""

    document: Document
    gateway: Gateway
    conversations: Conversations
    """The way to the gateway for callers that have no stream of their own to be asked on."""
    console: Console
    identity: Identity
    sessions: Sessions
    """Users who are here, and their apps: where these connect to."""
    demonstration: Demonstration | None = None

    async def listens(self, address: str) -> None:
        """Take note of where others reach the gateway: apps connect back there."""
        self.sessions.address = address
        if self.demonstration is not None:
            await self.demonstration.start()

    def secret(self, purpose: str) -> bytes:
        """Return a key for a purpose, the same on every replica and after a restart."""
        return self.identity.secret(purpose)

    async def settled(self, within: float) -> bool:
        """Wait until every source has come up or failed to; whether all have, in so many seconds."""
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
) -> AsyncGenerator[House, None]:
    """Build a gateway from its document and run it until the block ends.

    `tools` are served beside those the document names, `demo` adds the demonstration's, and every call is
    written to `journal_to`, where there is one. MCP servers are started, and not waited for.
    """
    async with AsyncExitStack() as stack:
        store, shared = await open_store(document.store), open_shared(document.shared)
        stack.push_async_callback(store.close)
        stack.push_async_callback(shared.close)
        _, overlay = await store.overlay.load()
        current = placed(again(document, env=env, overlay=overlay), document) if overlay else document
        redactor = redactor or Redactor()
        redactor.learn(*current.secrets)
        spans = await stack.enter_async_context(exporting(current, env, redactor))
        parts = _Parts(
            first=document,
            document=current,
            env=env,
            store=store,
            shared=shared,
            room=await stack.enter_async_context(app_room(current, store)),
            tasks=await stack.enter_async_context(_background()),
            demo=demo,
            before=own_sources(document, tools),
            after=our_sources(document, home(env), demo=demo),
            redactor=redactor,
            wants=None if spans is None else spans.choice,
        )
        house = await parts.assemble([sink for sink in (journal_to, spans) if sink is not None])
        stack.push_async_callback(house.conversations.close)
        yield house


@asynccontextmanager
async def _background() -> AsyncGenerator[TaskGroup, None]:
    """Tasks that live as long as the gateway; an error of the block itself leaves as it is, in no group."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised again below, outside the group
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What the house is put together from."""

    first: Document
    document: Document
    env: Mapping[str, str]
    store: Store
    shared: Shared
    tasks: TaskGroup
    room: AppRoom
    demo: bool
    before: tuple[Source, ...]
    after: tuple[Source, ...]
    redactor: Redactor
    wants: Callable[[Origin], bool] | None

    async def assemble(self, sinks: Sequence[Sink]) -> House:
        """Put everything in its place and start what runs."""
        document, store = self.document, self.store
        catalog = await self._catalog()
        supervisor, breaker, sequences = Supervisor(catalog), Breaker(), Sequences()
        places = Places(document.limits.parked, document.limits.parked_per_user)
        metrics = Metrics(document.metrics.prefix, sources=supervisor.states, parked=places.waiting)
        journal = Journal(metrics, (*sinks, *self._sinks(), sequences))
        contexts = Contexts(contexts_of(document))
        budget = Budget.of(document, contexts, self.shared)
        steps = self._steps(journal, supervisor, breaker, budget)
        policy = self._policy(contexts, budget)
        completion = Completion(journal.history.rate, sequences.followers, journal.history.tried)
        identity = await self._identity()
        gateway = _gateway(
            policy, contexts, steps, supervisor, journal, completion=completion, people=identity.people
        )
        catalog.listen(gateway.adopt)
        self.shared.listen("users", lambda change: gateway.user_changed(change.about))
        budget.meter.listen(gateway.caller_changed)
        config = self._config(catalog, contexts, gateway, supervisor, breaker)
        console = Console(
            gateway=gateway,
            catalog=catalog,
            policy=policy,
            contexts=contexts,
            steps=steps,
            supervisor=supervisor,
            servers=Servers(catalog=catalog, supervisor=supervisor, breaker=breaker, config=config),
            store=store,
            shared=self.shared,
            ring=identity.ring,
            journal=journal,
            learn=self.redactor.learn,
            apps=self._app_desk(supervisor, catalog),
            users=self._user_desk(catalog, policy),
        )
        await self.tasks.start(journal.run)
        await self._start(supervisor, config, console, budget)
        return self._house(console, identity, places)

    def _house(self, console: Console, identity: Identity, places: Places) -> House:
        shown = Demonstration(room=self.room, store=self.store, shared=self.shared, tasks=self.tasks)
        return House(
            document=self.document,
            gateway=console.gateway,
            conversations=self._conversations(console.gateway, identity, places),
            console=console,
            identity=identity,
            sessions=self.room.sessions,
            demonstration=shown if self.demo else None,
        )

    def _steps(
        self, journal: Journal, supervisor: Supervisor, breaker: Breaker, budget: Budget
    ) -> tuple[Step, ...]:
        return order(
            self.document,
            journal,
            self.shared,
            supervisor,
            breaker,
            replay=Replay(self.store.replays, new_mark(), is_gone),
            ready=self.room.sessions.ready,
            silent=budget.silent,
            spend=budget.spend(),
            wants=self.wants,
        )

    def _sinks(self) -> tuple[Sink, ...]:
        return UsageTally(self.store.usage), RecentCalls(self.store.calls), ToolEvents(self.room.sessions)

    def _app_desk(self, supervisor: Supervisor, catalog: Catalog) -> AppDesk:
        room = self.room
        return AppDesk(
            store=self.store,
            shared=self.shared,
            refresh=room.source.refresh,
            find=room.source.find,
            sessions=room.sessions,
            egress=room.egress,
            taken=lambda package: any(each.id == package for each in supervisor.states()),
            served=room.source.apps,
            room=lambda: MOST_TOOLS - len(catalog.snapshot.tools),
        )

    def _user_desk(self, catalog: Catalog, policy: Policy) -> UserDesk:
        room = self.room

        def named(name: str) -> Sequence[Tool]:
            return catalog.snapshot.find(name)

        return UserDesk(
            store=self.store,
            shared=self.shared,
            sessions=room.sessions,
            find=room.source.find,
            named=named,
            policy=policy,
            phone_microphone=self.document.apps.phone_microphone,
        )

    def _policy(self, contexts: Contexts, budget: Budget) -> Policy:
        hardware = Hardware(phone_microphone=self.document.apps.phone_microphone)
        return Policy(
            (Installed(), contexts, Disabled(), hardware, budget.rule, Pinned(), Permissions(), Removed())
        )

    def _conversations(self, gateway: Gateway, identity: Identity, places: Places) -> Conversations:
        wait = self.document.limits.parked_ms / 1000
        seal = Seal(partial(identity.secret, "states of calls"))
        return Conversations(gateway, seal, places=places, wait=wait)

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
        )

    async def _start(
        self, supervisor: Supervisor, config: Reloader, console: Console, budget: Budget
    ) -> None:
        self.tasks.start_soon(budget.meter.run)
        core = core_source(console.servers, console.gateway, budget.meter)
        room = self.room
        for source in (*self.before, *self.after, core, room.source):
            supervisor.add(source)
        await config.start()
        await self.tasks.start(room.sessions.run)
        await supervisor.start(self.tasks)
        self._watch("apps", rereading(self.store.apps.mark, room.reread))
        self.tasks.start_soon(forget_replays, self.store.replays)
        path = self.document.source
        if path is not None and self.document.reload.watch:
            self.tasks.start_soon(watch, path, config)

    def _watch(self, what: str, look: Callable[[], Awaitable[None]]) -> None:
        watching = Watch(what, look)
        self.shared.listen(what, watching.hear)
        self.tasks.start_soon(watching.run)

    async def _catalog(self) -> Catalog:
        claims: Keeper[str] = Keeper("name claims", self.store.claims.put, self.store.claims.drop)
        definitions: Keeper[Definition] = Keeper(
            "definitions",
            lambda fresh: self.store.definitions.put(tuple(fresh.values())),
            self.store.definitions.drop,
        )
        self.tasks.start_soon(claims.run)
        self.tasks.start_soon(definitions.run)
        catalog = Catalog(
            (*ids(self.before), *self.document.mcp.servers, *ids(self.after), "crib", APPS),
            overrides=overrides_of(self.document),
            claims=await self.store.claims.all(),
            claimed=claims.note,
            known=await self.store.definitions.all(),
            seen=lambda fresh, stale: definitions.note({each.name: each for each in fresh}, stale),
        )
        catalog.pin(self.document.pins, pin_modes(self.document))
        return catalog

    async def _identity(self) -> Identity:
        auth = self.document.auth
        admin = admin_key(auth.admin_key, home(self.env), new_key)
        self.redactor.learn(admin)
        ring = KeyRing()

        async def reread() -> None:
            ring.load(await self.store.keys.all())

        await reread()
        self._watch("keys", reread)
        people = self.room.people
        self.shared.listen("users", lambda change: people.forget(change.about))
        return Identity(
            ring,
            admin,
            people=people,
            trust_header=TrustHeader() if auth.mode == "trust_header" else None,
            anonymous=Anonymous(auth.anonymous.context) if auth.anonymous is not None else None,
        )


def _gateway(
    policy: Policy,
    contexts: Contexts,
    steps: Sequence[Step],
    supervisor: Supervisor,
    journal: Journal,
    *,
    completion: Completion,
    people: People,
) -> Gateway:
    gateway = Gateway(
        policy,
        partial(_chain, steps, supervisor),
        completion,
        journal,
        new_id=new_id,
        contexts=lambda: contexts.contexts,
        servers=lambda: [state.id for state in supervisor.states() if state.family == "mcp"],
        present=people.present,
    )
    following = gateway.library.following
    supervisor.news.attend(following.wanted, following.updated)
    following.spare = supervisor.refollow
    return gateway


def _chain(steps: Sequence[Step], supervisor: Supervisor, tool: Tool) -> Handler:
    return compose(steps, tool, supervisor.handler(tool))
