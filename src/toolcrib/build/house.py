"""Puts a gateway together from its document and runs it."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from toolcrib.build.convert import contexts_of, overrides_of
from toolcrib.build.keepers import Keeper, KeyWatch, forget_replays
from toolcrib.build.order import order
from toolcrib.build.reload import Reloader, pin_modes, placed
from toolcrib.build.traces import exporting
from toolcrib.build.watch import watch
from toolcrib.catalog import Catalog
from toolcrib.config import Document, again, home
from toolcrib.console import Console, Servers
from toolcrib.core import core_tools
from toolcrib.gateway import Completion, Conversations, Gateway, Places, Seal
from toolcrib.identity import Anonymous, Identity, KeyRing, TrustHeader, admin_key, new_key
from toolcrib.interfaces import Definition, Handler, Shared, Source, Step, Store
from toolcrib.local import SearchSettings, local_tools
from toolcrib.model import Origin, Tool
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
from toolcrib.policy import Contexts, Disabled, Permissions, Pinned, Policy, Removed
from toolcrib.sdk import AnyTool
from toolcrib.sources.functions import Functions, load_module, source_id
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
        store = await open_store(document.store)
        stack.push_async_callback(store.close)
        _, overlay = await store.overlay.load()
        current = placed(again(document, env=env, overlay=overlay), document) if overlay else document
        redactor = redactor or Redactor()
        redactor.learn(*current.secrets)
        shared = open_shared(document.shared)
        stack.push_async_callback(shared.close)
        spans = await stack.enter_async_context(exporting(current, env, redactor))
        tasks = await stack.enter_async_context(_background())
        parts = _Parts(
            first=document,
            document=current,
            env=env,
            store=store,
            shared=shared,
            tasks=tasks,
            before=_own_sources(document, tools),
            after=_our_sources(document, home(env), demo=demo),
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
    before: tuple[Source, ...]
    after: tuple[Source, ...]
    redactor: Redactor
    wants: Callable[[Origin], bool] | None

    async def assemble(self, sinks: Sequence[Sink]) -> House:
        """Put everything in its place and start what runs."""
        document, store = self.document, self.store
        catalog = await self._catalog()
        supervisor = Supervisor(catalog)
        places = Places(document.limits.parked, document.limits.parked_per_user)
        metrics = Metrics(document.metrics.prefix, sources=supervisor.states, parked=places.waiting)
        sequences = Sequences()
        journal = Journal(metrics, (*sinks, UsageTally(store.usage), RecentCalls(store.calls), sequences))
        breaker = Breaker()
        replay = Replay(store.replays, new_mark(), is_gone)
        steps = order(document, journal, self.shared, supervisor, breaker, replay=replay, wants=self.wants)
        contexts = Contexts(contexts_of(document))
        policy = Policy((contexts, Disabled(), Pinned(), Permissions(), Removed()))
        completion = Completion(journal.history.rate, sequences.followers)
        gateway = _gateway(policy, contexts, steps, supervisor, journal, completion=completion)
        catalog.listen(gateway.adopt)
        config = self._config(catalog, contexts, gateway, supervisor, breaker)
        servers = Servers(catalog=catalog, supervisor=supervisor, breaker=breaker, config=config)
        identity = await self._identity()
        console = Console(
            gateway=gateway,
            catalog=catalog,
            policy=policy,
            contexts=contexts,
            steps=steps,
            supervisor=supervisor,
            servers=servers,
            store=store,
            shared=self.shared,
            ring=identity.ring,
            journal=journal,
            learn=self.redactor.learn,
        )
        await self.tasks.start(journal.run)
        await self._start(supervisor, config, servers)
        talks = self._conversations(gateway, identity, places)
        return House(
            document=document, gateway=gateway, conversations=talks, console=console, identity=identity
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
            own=(_ids(self.before), (*_ids(self.after), "crib")),
            catalog=catalog,
            contexts=contexts,
            gateway=gateway,
            supervisor=supervisor,
            breaker=breaker,
            store=self.store,
            redactor=self.redactor,
        )

    async def _start(self, supervisor: Supervisor, config: Reloader, servers: Servers) -> None:
        core = Functions("crib", core_tools(servers), family="core")
        for source in (*self.before, *self.after, core):
            supervisor.add(source)
        await config.start()
        await supervisor.start(self.tasks)
        self.tasks.start_soon(forget_replays, self.store.replays)
        path = self.document.source
        if path is not None and self.document.reload.watch:
            self.tasks.start_soon(watch, path, config)

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
            (*_ids(self.before), *self.document.mcp.servers, *_ids(self.after), "crib"),
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
        ring.load(await self.store.keys.all())
        watching = KeyWatch(ring, self.store)
        self.shared.listen("keys", watching.hear)
        self.tasks.start_soon(watching.run)
        return Identity(
            ring,
            admin,
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
) -> Gateway:
    gateway = Gateway(
        policy,
        partial(_chain, steps, supervisor),
        completion,
        journal,
        new_id=new_id,
        contexts=lambda: contexts.contexts,
        servers=lambda: [state.id for state in supervisor.states() if state.family == "mcp"],
    )
    following = gateway.library.following
    supervisor.news.attend(following.wanted, following.updated)
    following.spare = supervisor.refollow
    return gateway


def _chain(steps: Sequence[Step], supervisor: Supervisor, tool: Tool) -> Handler:
    return compose(steps, tool, supervisor.handler(tool))


def _ids(sources: Sequence[Source]) -> tuple[str, ...]:
    return tuple(source.id for source in sources)


def _own_sources(document: Document, tools: Sequence[AnyTool]) -> tuple[Source, ...]:
    """Return the operator's own functions: config order decides who owns a name, and theirs go first."""
    folder = document.source.parent.resolve() if document.source is not None else Path.cwd()
    given = (Functions("tools", tools),) if tools else ()
    named = (Functions(source_id(each), load_module(each, folder=folder)) for each in document.functions)
    return (*given, *named)


def _our_sources(document: Document, folder: Path, *, demo: bool) -> tuple[Source, ...]:
    """Return what comes with Toolcrib, after everything the operator brings."""
    search = document.search
    local = local_tools(SearchSettings(search.url, search.timeout_ms / 1000) if search.url else None)
    ours = Functions("local", local.tools, close=local.aclose)
    return (ours, *_demonstration(folder)) if demo else (ours,)


def _demonstration(folder: Path) -> tuple[Source, ...]:
    """Return what `--demo` adds; its flashcards are kept in this folder, once somebody uses them."""
    tools = Functions("demo", load_module("toolcrib.demo.tools"))
    if find_spec("fsrs") is None:
        log.warning("the demonstration leaves its flashcards out: install toolcrib[demo] to have them")
        return (tools,)
    from toolcrib.demo.flashcards import flashcards

    return tools, Functions("flashcards", flashcards(folder / "flashcards.db").get_all())
