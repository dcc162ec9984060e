"""Keeps an eye on a connected server: whether its list has changed, and whether it is still there."""

import logging
from collections.abc import Awaitable, Callable
from math import inf

import anyio

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.discovery import first_page
from toolcrib.sources.mcp.envelope import LISTEN
from toolcrib.sources.mcp.faults import Fault, Refusal
from toolcrib.sources.mcp.greeting import Greeting
from toolcrib.sources.mcp.settings import McpSettings

log = logging.getLogger(__name__)

POLL = 60.0
"""How often a server that cannot tell of changes is asked, in seconds."""
PROBE = 5.0
"""How long a server we are in doubt of may take to answer, in seconds."""
MOST_MISSES = 3
"""Failed lists in a row after which a server that is only an address to us counts as dead."""
LULL, LONGEST_LULL = 0.1, 10.0
"""The least time between two lists, in seconds; twice as long each time while there is ever more to tell."""

PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""How long to wait before what failed is tried again, in seconds: at first, and after ever more failures."""

_STEADY = 10.0
_CHANGED = "notifications/tools/list_changed"
_LISTENED = "notifications/subscriptions/acknowledged"


class Watch:
    """The watch over one connection, from before it is opened, so that nothing is missed."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._stale, self._doubted = anyio.Event(), anyio.Event()
        self._told = False
        self._misses = 0

    def heard(self, method: str, params: JsonObject) -> None:
        """Take note of what the server says unasked."""
        if method == _LISTENED:
            self._told = True
        # What changed before the server began to tell was not told, so that is a reason to ask as well.
        if method in (_CHANGED, _LISTENED):
            self._stale.set()

    def doubt(self) -> None:
        """Have a look at once whether the server is still there."""
        self._doubted.set()

    async def keep(
        self, connection: Connection, greeting: Greeting, refresh: Callable[[], Awaitable[None]]
    ) -> None:
        """Call `refresh` when the list may have changed; raise ConnectionError when the server is lost."""
        # The stream a web server may tell by breaks and fails without a sign, so we do not rely on it.
        self._told = greeting.era == "legacy" and greeting.tells and self._settings.transport != "http"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hear, connection)
            if greeting.era == "modern" and greeting.tells:
                tasks.start_soon(self._listen, connection)
            if self._settings.transport == "http":
                tasks.start_soon(self._probe, connection, greeting)
            tasks.start_soon(self._poll)
            tasks.start_soon(self._refresh, refresh)
            raise ConnectionError(await connection.lost())

    async def _hear(self, connection: Connection) -> None:
        try:
            await connection.hear()
        except Fault as fault:
            self._log("cannot tell us of changes any more", fault)

    async def _listen(self, connection: Connection) -> None:
        """Subscribe to changes, again whenever that ends; the acknowledgement brings a fresh list."""
        pause = PAUSE
        while True:
            begun = anyio.current_time()
            try:
                await connection.request("subscriptions/listen", LISTEN)
            except Refusal as refusal:
                self._log("has no subscriptions, so it is asked for changes", refusal)
                return
            except Fault as fault:
                self._log("ended our subscription", fault)
                self.doubt()
            finally:
                self._told = False
            if anyio.current_time() - begun > _STEADY:
                pause = PAUSE
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _poll(self) -> None:
        while True:
            await anyio.sleep(self._settings.poll or POLL)
            if self._settings.poll or not self._told:
                self._stale.set()

    async def _probe(self, connection: Connection, greeting: Greeting) -> None:
        """Find out whether a server is there at all; a refusal is a sign of life."""
        while True:
            await self._doubted.wait()
            self._doubted = anyio.Event()
            try:
                with anyio.fail_after(PROBE):
                    await first_page(connection, greeting)
            except Refusal as refusal:
                self._log("does not list its tools", refusal)
            except Fault as fault:
                raise ConnectionError(f"the server cannot be reached: {fault}") from fault
            except TimeoutError:
                raise ConnectionError(f"the server did not answer within {PROBE:g} s") from None
            await anyio.sleep(PAUSE)

    async def _refresh(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """List again when there is a reason to, never twice at a time; what failed is tried again."""
        pause, lull = inf, LULL
        while True:
            with anyio.move_on_after(pause):
                await self._stale.wait()
            self._stale = anyio.Event()
            try:
                with anyio.fail_after(self._settings.start_timeout):
                    await refresh()
                self._misses, pause = 0, inf
            except Fault as fault:
                pause = self._missed(str(fault))
            except TimeoutError:
                pause = self._missed(f"no answer within {self._settings.start_timeout:g} s")
            await anyio.sleep(lull)
            # A flood of changes may cost us, and all who hear of them, only so much.
            lull = min(2 * lull, LONGEST_LULL) if self._stale.is_set() else LULL

    def _missed(self, reason: str) -> float:
        """Count a list that failed; return how long to wait before the next try."""
        self._misses += 1
        self._log("could not be asked for its tools again, so the last ones stay", reason)
        if self._settings.transport == "http" and self._misses >= MOST_MISSES:
            raise ConnectionError(f"the server failed to list its tools {MOST_MISSES} times: {reason}")
        return min(PAUSE * 2.0 ** (self._misses - 1), LONGEST_PAUSE)

    def _log(self, what: str, why: object) -> None:
        log.warning("%s %s: %s", self._settings.id, what, self._settings.redact(str(why)))
