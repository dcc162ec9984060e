"""Wraps the store, shared state and every source, so that any await on them can be made to fail."""

import inspect
from collections import Counter
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

import toolcrib.identity.users
import toolcrib.runtime.runtime
from toolcrib.errors import Lost, Unavailable
from toolcrib.interfaces import Shared, Source, Store
from toolcrib.supervisor import Supervisor

KINDS = ("unavailable", "slow", "error", "lost", "cancelled", "hang")
"""`lost` fails after it has taken effect, all others before."""
STORE_SECONDS = 0.05
"""How long a slow store takes before it gives up: it has a limit of its own, as a source's `check` has."""
MAX_READ_SECONDS = 0.8
"""How long the caller's user is waited for here, in place of 5 s."""
counting: ContextVar[bool] = ContextVar("counting", default=False)
"""Whether the running task works for the request that is tested."""


def async_methods(protocol: type, name: str) -> set[str]:
    """Names of all that is awaited of an interface and of its parts, `store.keys.add` for one."""
    found: set[str] = set()
    for each, value in vars(protocol).items():
        if inspect.iscoroutinefunction(value):
            found.add(f"{name}.{each}")
        elif isinstance(value, property) and value.fget is not None:
            part: Any = inspect.get_annotations(value.fget, eval_str=True).get("return")
            if isinstance(part, type) and getattr(part, "_is_protocol", False):
                found |= async_methods(part, f"{name}.{each}")
    return found


POINTS = async_methods(Store, "store") | async_methods(Shared, "shared") | {"source.call", "source.check"}
START_AND_STOP = {"store.gateway_id", "store.claims.all", "store.close", "shared.close"}
"""Awaited while the gateway starts and stops, and at no other time."""
UNUSED = {"shared.appear", "shared.vanish", "shared.present", "store.keys.all", "store.users.having"}
"""Awaited by nothing in the gateway."""
BACKGROUND = {
    "store.apps.mark",
    "store.calls.add",
    "store.calls.prune",
    "store.claims.drop",
    "store.claims.put",
    "store.definitions.drop",
    "store.definitions.put",
    "store.keys.purge",
    "store.keys.used",
    "store.mcp_sessions.ended_since",
    "store.mcp_sessions.prune",
    "store.mcp_sessions.renew",
    "store.replays.prune",
    "store.replays.totals",
    "store.usage.add",
    "store.users.unused_since",
    "store.users.used",
    "store.watch",
}
"""Awaited by background tasks, and by no request."""


class Faults:
    """Counts what a request awaits, and makes one of these fail, or one method each time or once."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        """What the request has awaited since `arm`."""
        self.all_seen: Counter[str] = Counter()
        self.failed = 0
        """How many faults there were."""
        self.at: tuple[str, int] | None = None
        """The await to fail at: its name, and how many of this name come before it."""
        self.method = ""
        self.times = 0
        """How often the method still fails."""
        self.kind = "unavailable"
        self.cancel: Callable[[], None] = lambda: None
        """Cancels what is tested."""

    def arm(self, at: tuple[str, int] | None, kind: str = "unavailable") -> None:
        """Count from zero, and fail at this await of the request."""
        self.seen, self.at, self.kind = [], at, kind

    def arm_method(self, name: str, kind: str = "unavailable", *, times: int = 1_000_000) -> None:
        """Fail at this method, whoever awaits it."""
        self.method, self.kind, self.times = name, kind, times

    async def point(self, name: str) -> bool:
        """Pass, or fail here; whether the method must fail once it has taken effect."""
        self.all_seen[name] += 1
        here = False
        if counting.get():
            here = (name, self.seen.count(name)) == self.at
            self.seen.append(name)
        if name == self.method and self.times > 0:
            self.times -= 1
            here = True
        if not here:
            return False
        self.failed += 1
        if self.kind != "lost":
            await self._fail(name)
        return self.kind == "lost"

    async def _fail(self, name: str) -> None:
        if self.kind == "cancelled":
            # Where a shield holds the cancellation off, the await succeeds a little later.
            self.cancel()
            await anyio.sleep(STORE_SECONDS)
            return
        if self.kind == "error":
            raise OSError(5, f"injected at {name}")
        if self.kind == "hang":
            await anyio.sleep_forever()
        if self.kind == "slow":
            await anyio.sleep(STORE_SECONDS)
        raise Unavailable("SOURCE_DOWN", "injected", retry_after=1.0)


class Wrapped:
    """Looks like what it wraps; what is awaited of it passes a fault point first."""

    def __init__(self, inner: Any, name: str, faults: Faults) -> None:
        self._inner, self._name, self._faults = inner, name, faults
        self._made: dict[str, Any] = {}

    def __getattr__(self, attribute: str) -> Any:
        if attribute not in self._made:
            value = getattr(self._inner, attribute)
            name = f"{self._name}.{attribute}"
            is_part = any(point.startswith(f"{name}.") for point in POINTS)
            if not is_part and name not in POINTS:
                return value
            self._made[attribute] = (
                Wrapped(value, name, self._faults) if is_part else self._passing(value, name)
            )
        return self._made[attribute]

    def _passing(self, method: Any, name: str) -> Any:
        async def run(*args: Any, **named: Any) -> Any:
            is_lost = await self._faults.point(name)
            result = await method(*args, **named)
            if is_lost:
                raise Lost("OUTCOME_UNKNOWN", f"injected after {name}")
            return result

        return run


class WrappedSource(Wrapped):
    """A source, whose `run` is its life and no await of a call."""

    def call(self, call: Any) -> Coroutine[Any, Any, Any]:
        return self._passing(self._inner.call, "source.call")(call)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Fault points in every gateway that is built from now on."""
    made = Faults()
    open_store, open_shared = toolcrib.runtime.runtime.open_store_of, toolcrib.runtime.runtime.open_shared
    add = Supervisor.add

    async def store(*args: Any) -> Any:
        return Wrapped(await open_store(*args), "store", made)

    def shared(*args: Any) -> Any:
        return Wrapped(open_shared(*args), "shared", made)

    def wrap(self: Supervisor, source: Source, *args: Any, **named: Any) -> None:
        wrapped: Any = WrappedSource(source, "source", made)
        add(self, wrapped, *args, **named)

    monkeypatch.setattr(toolcrib.runtime.runtime, "open_store_of", store)
    monkeypatch.setattr(toolcrib.runtime.runtime, "open_shared", shared)
    monkeypatch.setattr(toolcrib.identity.users, "MAX_READ_SECONDS", MAX_READ_SECONDS)
    monkeypatch.setattr(Supervisor, "add", wrap)
    return made
