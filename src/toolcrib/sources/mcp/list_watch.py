"""Watches a connected server: refreshes its lists after changes, and probes whether it still responds."""

import logging
from collections.abc import Awaitable, Callable, Collection
from math import inf
from time import thread_time
from typing import Any, Protocol, cast

import anyio

from toolcrib.mcp import methods
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection, JsonRpcError, McpSettings, ServerError
from toolcrib.sources.mcp.envelope import listen_params
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
_PART_OF_CHANGE: dict[str, Part] = {methods.LIST_CHANGED[part]: part for part in PARTS}


class WatchedServer(Protocol):
    """The server to refresh, as the watch uses it."""

    @property
    def unread(self) -> Collection[Part]:
        """Lists that could not be read yet."""
        ...

    @property
    def subscriptions(self) -> ServerSubscriptions:
        """Its resource subscriptions."""
        ...

    def refresh(self) -> Awaitable[None]:
        """List its tools again."""
        ...

    def refresh_resources(self, parts: Collection[Part]) -> Awaitable[Collection[Part]]:
        """List its resources and prompts again; return the parts that could not be listed."""
        ...


class ServerWatch:
    """The watch over one connection; created before it opens, so that no notification is missed."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._tool_job, self._resource_job = _DebouncedJob(), _DebouncedJob()
        self._due_parts: set[Part] = set()
        self._probe_requested = anyio.Event()
        self._has_notifications = False
        """Whether the server's change notifications reach us, as far as is known."""
        self._misses, self._failures = 0, 0
        self._server_subscriptions: ServerSubscriptions | None = None

    def handle_notification(self, method: str, params: JsonObject) -> None:
        """Handle a notification that belongs to no request."""
        if method == methods.ACKNOWLEDGED:
            self._acknowledged(params)
        elif method == methods.LIST_CHANGED["tools"]:
            self._tool_job.notify_change()
        elif method in _PART_OF_CHANGE:
            self._resources_changed(_PART_OF_CHANGE[method])
        elif method == methods.RESOURCE_UPDATED and self._server_subscriptions is not None:
            self._server_subscriptions.handle_update(params)

    def probe_now(self) -> None:
        """Trigger a liveness probe now."""
        self._probe_requested.set()

    async def run(
        self, connection: Connection, introduction: ServerIntroduction, server: WatchedServer
    ) -> None:
        """Refresh what may have changed; raise ConnectionError when the server is lost."""
        # The notification stream of an HTTP server can fail without an error, so we do not rely on it.
        self._has_notifications = introduction.era == "legacy" and self._settings.transport != "http"
        self._server_subscriptions = server.subscriptions
        self._trigger_resources(*server.unread)
        change_keys = _change_keys(introduction)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._receive, connection)
            tasks.start_soon(server.subscriptions.run)
            if introduction.era == "modern" and change_keys:
                params = listen_params(dict.fromkeys(change_keys.values(), True))
                tasks.start_soon(self._listen, connection, params)
            if self._settings.transport == "http":
                tasks.start_soon(self._probe, connection, introduction)
            tasks.start_soon(self._poll, change_keys)
            tasks.start_soon(self._tool_job.run, lambda: self._list_tools(server))
            tasks.start_soon(self._resource_job.run, lambda: self._list_resources(server))
            raise ConnectionError(await connection.lost())

    def _trigger_resources(self, *parts: Part) -> None:
        if parts:
            self._due_parts.update(parts)
            self._resource_job.trigger()

    def _resources_changed(self, *parts: Part) -> None:
        self._due_parts.update(parts)
        self._resource_job.notify_change()

    def _acknowledged(self, params: JsonObject) -> None:
        """Handle the acknowledgement of a subscription: list everything, as earlier changes were missed."""
        declared: Any = params.get("notifications")
        if isinstance(declared, dict) and methods.RESOURCE_SUBSCRIPTIONS in cast("JsonObject", declared):
            if self._server_subscriptions is not None:
                self._server_subscriptions.acknowledged(params)
            return
        self._has_notifications = True
        self._tool_job.notify_change()
        self._resources_changed(*PARTS)

    async def _receive(self, connection: Connection) -> None:
        try:
            await connection.receive()
        except ServerError as fault:
            self._log("cannot tell us of changes any more", fault)

    async def _listen(self, connection: Connection, params: bytes) -> None:
        """Subscribe to list changes, again after each end; every acknowledgement triggers a fresh list."""
        pause = RETRY_DELAY_SECONDS
        while True:
            started_at = anyio.current_time()
            try:
                await connection.request(methods.LISTEN, params)
            except JsonRpcError as refusal:
                self._log("has no subscriptions, so it is asked for changes", refusal)
                return
            except ServerError as fault:
                self._log("ended our subscription", fault)
                self.probe_now()
            finally:
                self._has_notifications = False
            if anyio.current_time() - started_at > _STABLE_SECONDS:
                pause = RETRY_DELAY_SECONDS
            await anyio.sleep(pause)
            pause = min(2 * pause, MAX_RETRY_DELAY_SECONDS)

    async def _poll(self, change_keys: dict[str, str]) -> None:
        while True:
            await anyio.sleep(self._settings.poll or POLL_SECONDS)
            notified = change_keys if self._has_notifications and not self._settings.poll else {}
            if "tools" not in notified:
                self._tool_job.trigger()
            polled: list[Part] = [part for part in PARTS if part not in notified]
            self._trigger_resources(*polled)

    async def _probe(self, connection: Connection, introduction: ServerIntroduction) -> None:
        """Check on demand whether the server responds at all; a JSON-RPC error is a response, too."""
        while True:
            await self._probe_requested.wait()
            self._probe_requested = anyio.Event()
            try:
                with anyio.fail_after(PROBE_TIMEOUT_SECONDS):
                    await first_page(connection, introduction)
            except JsonRpcError as refusal:
                self._log("does not list its tools", refusal)
            except ServerError as fault:
                raise ConnectionError(f"the server cannot be reached: {fault}") from fault
            except TimeoutError:
                raise ConnectionError(
                    f"the server did not answer within {PROBE_TIMEOUT_SECONDS:g} s"
                ) from None
            await anyio.sleep(RETRY_DELAY_SECONDS)

    async def _list_tools(self, server: WatchedServer) -> float:
        try:
            with anyio.fail_after(self._settings.start_timeout):
                await server.refresh()
        except ServerError as fault:
            return self._missed(str(fault))
        except TimeoutError:
            return self._missed(f"no answer within {self._settings.start_timeout:g} s")
        self._misses = 0
        return inf

    async def _list_resources(self, server: WatchedServer) -> float:
        """Refresh resources and prompts, with retries; the server is up while its tools can be listed."""
        due_parts, self._due_parts = self._due_parts, set()
        failed: Collection[Part] = due_parts
        with anyio.move_on_after(self._settings.start_timeout):
            failed = await server.refresh_resources(due_parts)
        self._due_parts.update(failed)
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


class _DebouncedJob:
    """A debounced job: it runs when triggered, and never concurrently with itself."""

    def __init__(self) -> None:
        self._stale = anyio.Event()
        self._changed = False
        self._changed_at, self._interval = -inf, MIN_DEBOUNCE_SECONDS

    def trigger(self) -> None:
        """Trigger a run for a reason of the gateway."""
        self._stale.set()

    def notify_change(self) -> None:
        """Trigger a run because of a notification; frequent ones lengthen the debounce interval."""
        self._changed = True
        self._stale.set()

    async def run(self, job: Callable[[], Awaitable[float]]) -> None:
        """Run the job on each trigger; a failed job returns the seconds after which it runs without one."""
        pause = inf
        while True:
            with anyio.move_on_after(pause):
                await self._stale.wait()
            self._stale = anyio.Event()
            changed, self._changed = self._changed, False
            if changed:
                self._adjust_interval()
            started_at = thread_time()
            pause = await job()
            # Bounds the share of the event loop that a flood of changes and its subscribers can use. The time
            # includes that of other tasks, so it counts only for lists that the server triggered.
            cpu_seconds = thread_time() - started_at if changed else 0.0
            await anyio.sleep(max(self._interval, min(PAUSE_CPU_RATIO * cpu_seconds, MAX_DEBOUNCE_SECONDS)))

    def _adjust_interval(self) -> None:
        """Double the interval if the last change was recent; halve it for each quiet period since then."""
        now = anyio.current_time()
        quiet_seconds, self._changed_at = now - self._changed_at, now
        if quiet_seconds < QUIET_INTERVALS * self._interval:
            self._interval = min(2 * self._interval, MAX_DEBOUNCE_SECONDS)
        while self._interval > MIN_DEBOUNCE_SECONDS and quiet_seconds >= QUIET_INTERVALS * self._interval:
            quiet_seconds -= QUIET_INTERVALS * self._interval
            self._interval = max(self._interval / 2, MIN_DEBOUNCE_SECONDS)


def _change_keys(introduction: ServerIntroduction) -> dict[str, str]:
    """Return the lists with declared change notifications, and their keys in a subscription."""
    declared = {
        "tools": introduction.notifies_tools,
        "resources": introduction.notifies_resources,
        "prompts": introduction.notifies_prompts,
    }
    return {name: methods.LIST_SUBSCRIPTIONS[name] for name, is_declared in declared.items() if is_declared}


def _pause(failures: int) -> float:
    return min(RETRY_DELAY_SECONDS * 2.0 ** (failures - 1), MAX_RETRY_DELAY_SECONDS)
