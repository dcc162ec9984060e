"""Document in, running gateway out: the step order, and the one module that knows all the others."""

import logging
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from toolcrib.catalog import Catalog, Override, Overrides
from toolcrib.config import Document, home, load
from toolcrib.config.sections import Context as ContextSection
from toolcrib.config.sections import Override as OverrideSection
from toolcrib.console import Console
from toolcrib.errors import ToolcribError
from toolcrib.gateway import Completion, Gateway
from toolcrib.identity import Anonymous, Identity, KeyRing, TrustHeader, admin_key, new_key
from toolcrib.interfaces import Change, Claims, Handler, Shared, Source, Step, Store
from toolcrib.local import SearchSettings, local_tools
from toolcrib.model import Tool
from toolcrib.observe import Journal, Log, Metrics, RecentCalls, Redactor, Sink, UsageTally, new_id
from toolcrib.pipeline import compose
from toolcrib.policy import Context, Contexts, Disabled, Permissions, Policy, Removed
from toolcrib.sdk import AnyTool
from toolcrib.sources.functions import Functions, load_module, source_id
from toolcrib.steps.attempt import Attempt
from toolcrib.steps.bulkhead import Bulkhead
from toolcrib.steps.cache import Cache
from toolcrib.steps.deadline import Deadline
from toolcrib.steps.limit import Limit
from toolcrib.steps.record import Record
from toolcrib.steps.recover import Recover
from toolcrib.steps.shape import Shape
from toolcrib.steps.validate import Validate
from toolcrib.steps.verify import Verify
from toolcrib.store import open_store
from toolcrib.store.shared import open_shared
from toolcrib.supervisor import Supervisor

log = logging.getLogger(__name__)

_POLL = 2.0
_LAST_WRITE = 3.0
"""How long a slow store may hold up the end of the process, in seconds."""


@dataclass(frozen=True, kw_only=True)
class House:
    """A running gateway: its two doors, who may come in, and the document it was built from."""

    document: Document
    gateway: Gateway
    console: Console
    identity: Identity


def order(document: Document, journal: Journal, shared: Shared, supervisor: Supervisor) -> tuple[Step, ...]:
    """Return the steps every call passes, outermost first; the way out is the same list read upwards."""
    limits = document.limits
    return (
        Record(journal),
        Recover(),
        Deadline(),
        Limit(shared, limits.per_user, limits.per_tool),
        Validate(),
        Shape(limits.result_bytes),
        Cache(shared),
        Verify(),
        Bulkhead(limits.concurrency, limits.waiting),
        Attempt(supervisor.timeout),
    )


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
    written to `journal_to`, where there is one.
    """
    async with AsyncExitStack() as stack:
        store = await open_store(document.store)
        stack.push_async_callback(store.close)
        version, overlay = await store.overlay.load()
        if version:
            merged = load(document.source, env=env, overlay=overlay)
            document = replace(merged, server=document.server, store=document.store, auth=document.auth)
        shared = open_shared(document.shared)
        stack.push_async_callback(shared.close)
        tasks = await stack.enter_async_context(_background())
        parts = _Parts(
            document=document,
            store=store,
            shared=shared,
            tasks=tasks,
            sources=_sources(document, tools, demo=demo),
            redactor=redactor or Redactor(document.secrets),
        )
        yield await parts.assemble(env, (journal_to,) if journal_to is not None else ())


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

    document: Document
    store: Store
    shared: Shared
    tasks: TaskGroup
    sources: tuple[Source, ...]
    redactor: Redactor

    async def assemble(self, env: Mapping[str, str], sinks: Sequence[Sink]) -> House:
        """Put everything in its place and start what runs."""
        document, store = self.document, self.store
        overrides = Overrides({name: _override(each) for name, each in document.overrides.items()})
        catalog = await self._catalog(overrides)
        supervisor = Supervisor(self.sources, catalog.replace)
        metrics = Metrics(document.metrics.prefix, sources=supervisor.states)
        journal = Journal(metrics, (*sinks, UsageTally(store.usage), RecentCalls(store.calls)))
        steps = order(document, journal, self.shared, supervisor)
        contexts = Contexts({name: _context(each) for name, each in document.contexts.items()})
        policy = Policy((contexts, Disabled(), Permissions(), Removed()))
        gateway = Gateway(
            policy,
            partial(_chain, steps, supervisor),
            Completion(journal.history.rate),
            journal,
            new_id=new_id,
            contexts=lambda: contexts.contexts,
        )
        catalog.listen(gateway.adopt)
        identity = await self._identity(env)
        await self.tasks.start(journal.run)
        await supervisor.start(self.tasks)
        console = Console(
            gateway=gateway,
            catalog=catalog,
            overrides=overrides,
            policy=policy,
            contexts=contexts,
            steps=steps,
            supervisor=supervisor,
            store=store,
            shared=self.shared,
            ring=identity.ring,
            journal=journal,
            learn=self.redactor.learn,
            warnings=tuple(str(each) for each in document.warnings),
        )
        return House(document=document, gateway=gateway, console=console, identity=identity)

    async def _catalog(self, overrides: Overrides) -> Catalog:
        keeper = _ClaimKeeper(self.store.claims)
        self.tasks.start_soon(keeper.run)
        ids = [source.id for source in self.sources]
        return Catalog(ids, overrides=overrides, claims=await self.store.claims.all(), claimed=keeper.note)

    async def _identity(self, env: Mapping[str, str]) -> Identity:
        auth = self.document.auth
        admin = admin_key(auth.admin_key, home(env), new_key)
        self.redactor.learn(admin)
        ring = KeyRing()
        ring.load(await self.store.keys.all())
        watch = _KeyWatch(ring, self.store)
        self.shared.listen("keys", watch.hear)
        self.tasks.start_soon(watch.run)
        return Identity(
            ring,
            admin,
            trust_header=TrustHeader() if auth.mode == "trust_header" else None,
            anonymous=Anonymous(auth.anonymous.context) if auth.anonymous is not None else None,
        )


class _KeyWatch:
    """Loads the keys again when another process has changed them: at once if told, else within seconds."""

    def __init__(self, ring: KeyRing, store: Store) -> None:
        self._ring, self._store = ring, store
        self._told = anyio.Event()

    def hear(self, change: Change) -> None:
        """Be told of a change."""
        del change
        self._told.set()

    async def run(self) -> None:
        """Watch until cancelled; while the store does not answer, the keys known so far hold."""
        failing = False
        while True:
            with anyio.move_on_after(_POLL):
                await self._told.wait()
            self._told = anyio.Event()
            try:
                self._ring.load(await self._store.keys.all())
                failing = False
            except ToolcribError as error:
                if not failing:
                    log.warning("keys cannot be read now; those known so far hold: %s", error)
                failing = True


class _ClaimKeeper:
    """Writes name claims to the store, off the path of whoever made them."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._event = anyio.Event()
        self._fresh: dict[str, str] = {}
        self._stale: set[str] = set()

    def note(self, fresh: Mapping[str, str], stale: Collection[str]) -> None:
        """Remember what to write."""
        self._stale.update(stale)
        self._fresh.update(fresh)
        self._stale.difference_update(fresh)
        self._event.set()

    async def run(self) -> None:
        """Write, once there is something, until cancelled; then what is left."""
        while True:
            try:
                await self._event.wait()
            finally:
                with anyio.move_on_after(_LAST_WRITE, shield=True):
                    await self._write()

    async def _write(self) -> None:
        self._event = anyio.Event()
        fresh, stale, self._fresh, self._stale = self._fresh, self._stale, {}, set()
        try:
            if stale:
                await self._claims.drop(stale)
            if fresh:
                await self._claims.put(fresh)
        except ToolcribError as error:
            log.warning("name claims cannot be stored now, and are tried again with the next: %s", error)
            self._fresh, self._stale = {**fresh, **self._fresh}, stale | self._stale


def _chain(steps: Sequence[Step], supervisor: Supervisor, tool: Tool) -> Handler:
    return compose(steps, tool, supervisor.handler(tool))


def _sources(document: Document, tools: Sequence[AnyTool], *, demo: bool) -> tuple[Source, ...]:
    """Return every source in config order, which decides who owns a name: the operator's own go first."""
    folder = document.source.parent.resolve() if document.source is not None else Path.cwd()
    sources: list[Source] = [Functions("tools", tools)] if tools else []
    sources += [Functions(source_id(each), load_module(each, folder=folder)) for each in document.functions]
    search = document.search
    local = local_tools(SearchSettings(search.url, search.timeout_ms / 1000) if search.url else None)
    sources.append(Functions("local", local.tools, close=local.aclose))
    if demo:
        sources.append(Functions("demo", load_module("toolcrib.demo.tools")))
    return tuple(sources)


def _context(section: ContextSection) -> Context:
    return Context(
        tools=section.tools,
        style=section.style,
        provider=section.provider,
        max_tools=section.max_tools,
        pinned=section.pinned,
    )


def _override(section: OverrideSection) -> Override:
    """From the config's spelling to the catalog's: milliseconds become seconds."""
    said = {each.name: getattr(section, each.name) for each in fields(section)}
    milliseconds = (("timeout_ms", "timeout"), ("slow_response_threshold_ms", "slow_threshold"))
    for old, new in milliseconds:
        value = said.pop(old)
        said[new] = None if value is None else value / 1000
    said["slow_message"] = said.pop("slow_response_message")
    return Override(**said)
