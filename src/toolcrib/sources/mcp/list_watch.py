"""Keeps an eye on a connected server: whether its lists have changed, and whether it is still there."""

import logging
from collections.abc import Awaitable, Callable, Collection
from math import inf
from time import thread_time
from typing import Any, Protocol, cast

import anyio

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.discovery import first_page
from toolcrib.sources.mcp.envelope import listen
from toolcrib.sources.mcp.errors import JsonRpcError, ServerError
from toolcrib.sources.mcp.handshake import ServerIntroduction
from toolcrib.sources.mcp.resource_lists import PARTS, Part
from toolcrib.sources.mcp.server_settings import McpSettings
from toolcrib.sources.mcp.subscriptions import ServerSubscriptions

log = logging.getLogger(__name__)

POLL = 60.0
"""How often a server that cannot tell of changes is asked, in seconds."""
PROBE = 5.0
"""How long a server we are in doubt of may take to answer, in seconds."""
MOST_MISSES = 3
"""Failed lists in a row after which a server that is only an address to us counts as dead."""
LULL, LONGEST_LULL = 0.1, 10.0
"""The least time between two lists, in seconds; twice as long each time while there is ever more to tell."""
QUIET_LULLS = 10
"""So many lulls without a change make the next one half as long."""
REST_SHARE = 9
"""So many times as long as a list kept the event loop busy, none follows: others get nine tenths of it."""

PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""How long to wait before what failed is tried again, in seconds: at first, and after ever more failures."""

_STEADY = 10.0
_TOOLS_CHANGED = "notifications/tools/list_changed"
_PART_CHANGED: dict[str, Part] = {f"notifications/{part}/list_changed": part for part in PARTS}
_UPDATED = "notifications/resources/updated"
_LISTENED = "notifications/subscriptions/acknowledged"


class WatchedServer(Protocol):
    """What is kept up to date: the life of a server."""

    @property
    def behind(self) -> Collection[Part]:
        """What could not be listed yet."""
        ...

    @property
    def following(self) -> ServerSubscriptions:
        """The resources it tells of."""
        ...

    def refresh(self) -> Awaitable[None]:
        """List its tools again."""
        ...

    def refresh_besides(self, parts: Collection[Part]) -> Awaitable[Collection[Part]]:
        """List what else it has again; return what could not be listed."""
        ...


class ServerWatch:
    """The watch over one connection, from before it is opened, so that nothing is missed."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._tools, self._besides = _Round(), _Round()
        self._due: set[Part] = set()
        self._doubted = anyio.Event()
        self._hears = False
        """Whether what the server tells reaches us, as far as we know."""
        self._misses, self._failures = 0, 0
        self._following: ServerSubscriptions | None = None

    def heard(self, method: str, params: JsonObject) -> None:
        """Take note of what the server says unasked."""
        if method == _LISTENED:
            self._agreed(params)
        elif method == _TOOLS_CHANGED:
            self._tools.tell()
        elif method in _PART_CHANGED:
            self._tell(_PART_CHANGED[method])
        elif method == _UPDATED and self._following is not None:
            self._following.heard(params)

    def doubt(self) -> None:
        """Have a look at once whether the server is still there."""
        self._doubted.set()

    async def keep(self, connection: Connection, greeting: ServerIntroduction, life: WatchedServer) -> None:
        """Refresh what may have changed; raise ConnectionError when the server is lost."""
        # The stream a web server may tell by breaks and fails without a sign, so we do not rely on it.
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
        """Hear that the server will tell from now on; what changed before is asked for."""
        said: Any = params.get("notifications")
        if isinstance(said, dict) and "resourceSubscriptions" in cast("JsonObject", said):
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
        """Subscribe to changes, again whenever that ends; the acknowledgement brings a fresh list."""
        pause = PAUSE
        while True:
            begun = anyio.current_time()
            try:
                await connection.request("subscriptions/listen", params)
            except JsonRpcError as refusal:
                self._log("has no subscriptions, so it is asked for changes", refusal)
                return
            except ServerError as fault:
                self._log("ended our subscription", fault)
                self.doubt()
            finally:
                self._hears = False
            if anyio.current_time() - begun > _STEADY:
                pause = PAUSE
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _poll(self, tells: "_Tells") -> None:
        while True:
            await anyio.sleep(self._settings.poll or POLL)
            sure = tells if self._hears and not self._settings.poll else {}
            if "tools" not in sure:
                self._tools.stir()
            unsure: list[Part] = [part for part in PARTS if part not in sure]
            self._stir(*unsure)

    async def _probe(self, connection: Connection, greeting: ServerIntroduction) -> None:
        """Find out whether a server is there at all; a refusal is a sign of life."""
        while True:
            await self._doubted.wait()
            self._doubted = anyio.Event()
            try:
                with anyio.fail_after(PROBE):
                    await first_page(connection, greeting)
            except JsonRpcError as refusal:
                self._log("does not list its tools", refusal)
            except ServerError as fault:
                raise ConnectionError(f"the server cannot be reached: {fault}") from fault
            except TimeoutError:
                raise ConnectionError(f"the server did not answer within {PROBE:g} s") from None
            await anyio.sleep(PAUSE)

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
        """Whatever goes wrong here, the server is there as long as its tools are."""
        due, self._due = self._due, set()
        failed: Collection[Part] = due
        with anyio.move_on_after(self._settings.start_timeout):
            failed = await life.refresh_besides(due)
        self._due.update(failed)
        self._failures = self._failures + 1 if failed else 0
        return _pause(self._failures) if failed else inf

    def _missed(self, reason: str) -> float:
        """Count a list that failed; return how long to wait before the next try."""
        self._misses += 1
        self._log("could not be asked for its tools again, so the last ones stay", reason)
        if self._settings.transport == "http" and self._misses >= MOST_MISSES:
            raise ConnectionError(f"the server failed to list its tools {MOST_MISSES} times: {reason}")
        return _pause(self._misses)

    def _log(self, what: str, why: object) -> None:
        log.warning("%s %s: %s", self._settings.id, what, self._settings.redact(str(why)))


class _Round:
    """Something that is done again when there is a reason to, never twice at a time."""

    def __init__(self) -> None:
        self._stale = anyio.Event()
        self._told = False
        self._told_at, self._lull = -inf, LULL

    def stir(self) -> None:
        """Give a reason of our own."""
        self._stale.set()

    def tell(self) -> None:
        """Give a reason that the server gave; many of those make the lulls longer."""
        self._told = True
        self._stale.set()

    async def run(self, do: Callable[[], Awaitable[float]]) -> None:
        """Do it, and again; what failed returns after how many seconds it is tried without a reason."""
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
            # A flood of changes may cost us, and all who hear of them, only so much. What others do with the
            # loop meanwhile is in it, so it counts only where the server asked for the list.
            busy = thread_time() - begun if told else 0.0
            await anyio.sleep(max(self._lull, min(REST_SHARE * busy, LONGEST_LULL)))

    def _reckon(self) -> None:
        """Lengthen the lull where the last change was just before; shorten it by the quiet in between."""
        now = anyio.current_time()
        quiet, self._told_at = now - self._told_at, now
        if quiet < QUIET_LULLS * self._lull:
            self._lull = min(2 * self._lull, LONGEST_LULL)
        while self._lull > LULL and quiet >= QUIET_LULLS * self._lull:
            quiet -= QUIET_LULLS * self._lull
            self._lull = max(self._lull / 2, LULL)


_Tells = dict[str, str]
"""Names of lists, and of what tells of them."""


def _tells(greeting: ServerIntroduction) -> _Tells:
    """Return the lists whose changes a server says it tells, and how a subscription names these."""
    said = {
        "tools": greeting.tells,
        "resources": greeting.tells_resources,
        "prompts": greeting.tells_prompts,
    }
    return {name: f"{name}ListChanged" for name, tells in said.items() if tells}


def _pause(failures: int) -> float:
    return min(PAUSE * 2.0 ** (failures - 1), LONGEST_PAUSE)
