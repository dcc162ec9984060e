"""Watches a connected server: refreshes its lists after changes, and probes whether it still responds."""

import logging
from collections.abc import Awaitable, Callable, Collection
from math import inf
from time import thread_time
from typing import Any, Protocol, cast

import anyio

from toolcrib.mcp.methods import (
    ACKNOWLEDGED,
    LIST_CHANGED,
    LIST_SUBSCRIPTIONS,
    LISTEN,
    RESOURCE_SUBSCRIPTIONS,
    RESOURCE_UPDATED,
)
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection, JsonRpcError, McpSettings, ServerError
from toolcrib.sources.mcp.envelope import listen
from toolcrib.sources.mcp.handshake import ServerIntroduction, first_page
from toolcrib.sources.mcp.resource_lists import PARTS, Part, ServerSubscriptions

log = logging.getLogger(__name__)

POLL_SECONDS = 60.0
"""Poll interval in seconds for lists without change notifications."""
PROBE_TIMEOUT_SECONDS = 5.0
"""Timeout of a liveness probe, in seconds."""
MAX_FAILED_LISTS = 3
"""Consecutive failures to list the tools after which a server at a URL counts as lost."""
MIN_DEBOUNCE_SECONDS, MAX_DEBOUNCE_SECONDS = 0.1, 10.0
"""Debounce interval between two lists in seconds: the minimum, and the maximum while changes are frequent."""
QUIET_INTERVALS = 10
"""Number of debounce intervals without a change after which the interval is halved."""
PAUSE_CPU_RATIO = 9
"""Pause after a list, in multiples of the CPU time it took: other tasks get nine tenths of the event loop."""

RETRY_DELAY_SECONDS, MAX_RETRY_DELAY_SECONDS = 1.0, 30.0
"""Retry delay in seconds: the initial one, and the maximum of the exponential backoff."""

_STABLE_SECONDS = 10.0
"""Seconds after which a subscription counts as stable: its end resets the backoff."""
_PART_OF_CHANGE: dict[str, Part] = {LIST_CHANGED[part]: part for part in PARTS}


class WatchedServer(Protocol):
    """The server to refresh, as the watch uses it."""

    @property
    def behind(self) -> Collection[Part]:
        """Lists that could not be read yet."""
        ...

    @property
    def following(self) -> ServerSubscriptions:
        """Its resource subscriptions."""
        ...

    def refresh(self) -> Awaitable[None]:
        """List its tools again."""
        ...

    def refresh_besides(self, parts: Collection[Part]) -> Awaitable[Collection[Part]]:
        """List its resources and prompts again; return the parts that could not be listed."""
        ...


class ServerWatch:
    """The watch over one connection; created before it opens, so that no notification is missed."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._tools, self._besides = _Round(), _Round()
        self._due: set[Part] = set()
        self._doubted = anyio.Event()
        self._hears = False
        """Whether the server's change notifications reach us, as far as is known."""
        self._misses, self._failures = 0, 0
        self._following: ServerSubscriptions | None = None

    def heard(self, method: str, params: JsonObject) -> None:
        """Handle a notification that belongs to no request."""
        if method == ACKNOWLEDGED:
            self._agreed(params)
        elif method == LIST_CHANGED["tools"]:
            self._tools.tell()
        elif method in _PART_OF_CHANGE:
            self._tell(_PART_OF_CHANGE[method])
        elif method == RESOURCE_UPDATED and self._following is not None:
            self._following.heard(params)

    def doubt(self) -> None:
        """Trigger a liveness probe now."""
        self._doubted.set()

    async def keep(self, connection: Connection, greeting: ServerIntroduction, life: WatchedServer) -> None:
        """Refresh what may have changed; raise ConnectionError when the server is lost."""
        # The notification stream of an HTTP server can fail without an error, so we do not rely on it.
        self._hears = greeting.era == "legacy" and self._settings.transport != "http"
        self._following = life.following
        self._stir(*life.behind)
        tells = _tells(greeting)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hear, connection)
            tasks.start_soon(life.following.run)
            if greeting.era == "modern" and tells:
                tasks.start_soon(self._listen, connection, listen(dict.fromkeys(tells.values(), True)))
            if self._settings.transport == "http":
                tasks.start_soon(self._probe, connection, greeting)
            tasks.start_soon(self._poll, tells)
            tasks.start_soon(self._tools.run, lambda: self._list_tools(life))
            tasks.start_soon(self._besides.run, lambda: self._list_besides(life))
            raise ConnectionError(await connection.lost())

    def _stir(self, *parts: Part) -> None:
        if parts:
            self._due.update(parts)
            self._besides.stir()

    def _tell(self, *parts: Part) -> None:
        self._due.update(parts)
        self._besides.tell()

    def _agreed(self, params: JsonObject) -> None:
        """Handle the acknowledgement of a subscription: list everything, as earlier changes were missed."""
        said: Any = params.get("notifications")
        if isinstance(said, dict) and RESOURCE_SUBSCRIPTIONS in cast("JsonObject", said):
            if self._following is not None:
                self._following.agreed(params)
            return
        self._hears = True
        self._tools.tell()
        self._tell(*PARTS)

    async def _hear(self, connection: Connection) -> None:
        try:
            await connection.hear()
        except ServerError as fault:
            self._log("cannot tell us of changes any more", fault)

    async def _listen(self, connection: Connection, params: bytes) -> None:
        """Subscribe to list changes, again after each end; every acknowledgement triggers a fresh list."""
        pause = RETRY_DELAY_SECONDS
        while True:
            begun = anyio.current_time()
            try:
                await connection.request(LISTEN, params)
            except JsonRpcError as refusal:
                self._log("has no subscriptions, so it is asked for changes", refusal)
                return
            except ServerError as fault:
                self._log("ended our subscription", fault)
                self.doubt()
            finally:
                self._hears = False
            if anyio.current_time() - begun > _STABLE_SECONDS:
                pause = RETRY_DELAY_SECONDS
            await anyio.sleep(pause)
            pause = min(2 * pause, MAX_RETRY_DELAY_SECONDS)

    async def _poll(self, tells: "_Tells") -> None:
        while True:
            await anyio.sleep(self._settings.poll or POLL_SECONDS)
            sure = tells if self._hears and not self._settings.poll else {}
            if "tools" not in sure:
                self._tools.stir()
            unsure: list[Part] = [part for part in PARTS if part not in sure]
            self._stir(*unsure)

    async def _probe(self, connection: Connection, greeting: ServerIntroduction) -> None:
        """Check on demand whether the server responds at all; a JSON-RPC error is a response, too."""
        while True:
            await self._doubted.wait()
            self._doubted = anyio.Event()
            try:
                with anyio.fail_after(PROBE_TIMEOUT_SECONDS):
                    await first_page(connection, greeting)
            except JsonRpcError as refusal:
                self._log("does not list its tools", refusal)
            except ServerError as fault:
                raise ConnectionError(f"the server cannot be reached: {fault}") from fault
            except TimeoutError:
                raise ConnectionError(
                    f"the server did not answer within {PROBE_TIMEOUT_SECONDS:g} s"
                ) from None
            await anyio.sleep(RETRY_DELAY_SECONDS)

    async def _list_tools(self, life: WatchedServer) -> float:
        try:
            with anyio.fail_after(self._settings.start_timeout):
                await life.refresh()
        except ServerError as fault:
            return self._missed(str(fault))
        except TimeoutError:
            return self._missed(f"no answer within {self._settings.start_timeout:g} s")
        self._misses = 0
        return inf

    async def _list_besides(self, life: WatchedServer) -> float:
        """Refresh resources and prompts, with retries; the server is up while its tools can be listed."""
        due, self._due = self._due, set()
        failed: Collection[Part] = due
        with anyio.move_on_after(self._settings.start_timeout):
            failed = await life.refresh_besides(due)
        self._due.update(failed)
        self._failures = self._failures + 1 if failed else 0
        return _pause(self._failures) if failed else inf

    def _missed(self, reason: str) -> float:
        """Count a failed list; return the delay in seconds before the next try."""
        self._misses += 1
        self._log("could not be asked for its tools again, so the last ones stay", reason)
        if self._settings.transport == "http" and self._misses >= MAX_FAILED_LISTS:
            raise ConnectionError(f"the server failed to list its tools {MAX_FAILED_LISTS} times: {reason}")
        return _pause(self._misses)

    def _log(self, what: str, why: object) -> None:
        log.warning("%s %s: %s", self._settings.id, what, self._settings.redact(str(why)))


class _Round:
    """A debounced job: it runs when triggered, and never concurrently with itself."""

    def __init__(self) -> None:
        self._stale = anyio.Event()
        self._told = False
        self._told_at, self._lull = -inf, MIN_DEBOUNCE_SECONDS

    def stir(self) -> None:
        """Trigger a run for a reason of the gateway."""
        self._stale.set()

    def tell(self) -> None:
        """Trigger a run because of a notification; frequent ones lengthen the debounce interval."""
        self._told = True
        self._stale.set()

    async def run(self, do: Callable[[], Awaitable[float]]) -> None:
        """Run the job on each trigger; a failed job returns the seconds after which it runs without one."""
        pause = inf
        while True:
            with anyio.move_on_after(pause):
                await self._stale.wait()
            self._stale = anyio.Event()
            told, self._told = self._told, False
            if told:
                self._reckon()
            begun = thread_time()
            pause = await do()
            # Bounds the share of the event loop that a flood of changes and its subscribers can use. The time
            # includes that of other tasks, so it counts only for lists that the server triggered.
            busy = thread_time() - begun if told else 0.0
            await anyio.sleep(max(self._lull, min(PAUSE_CPU_RATIO * busy, MAX_DEBOUNCE_SECONDS)))

    def _reckon(self) -> None:
        """Double the interval if the last change was recent; halve it for each quiet period since then."""
        now = anyio.current_time()
        quiet, self._told_at = now - self._told_at, now
        if quiet < QUIET_INTERVALS * self._lull:
            self._lull = min(2 * self._lull, MAX_DEBOUNCE_SECONDS)
        while self._lull > MIN_DEBOUNCE_SECONDS and quiet >= QUIET_INTERVALS * self._lull:
            quiet -= QUIET_INTERVALS * self._lull
            self._lull = max(self._lull / 2, MIN_DEBOUNCE_SECONDS)


_Tells = dict[str, str]
"""Names of lists, and their keys in a subscription."""


def _tells(greeting: ServerIntroduction) -> _Tells:
    """Return the lists with declared change notifications, and their keys in a subscription."""
    said = {"tools": greeting.tells, "resources": greeting.tells_resources, "prompts": greeting.tells_prompts}
    return {name: LIST_SUBSCRIPTIONS[name] for name, tells in said.items() if tells}


def _pause(failures: int) -> float:
    return min(RETRY_DELAY_SECONDS * 2.0 ** (failures - 1), MAX_RETRY_DELAY_SECONDS)
