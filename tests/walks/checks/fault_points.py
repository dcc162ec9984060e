"""Wraps the store, what replicas share and every source, so that any await on them can be made to fail."""

import inspect
from collections import Counter
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

import toolcrib.runtime.runtime
from toolcrib.errors import Unavailable
from toolcrib.interfaces import Shared, Source, Store
from toolcrib.supervisor import Supervisor

KINDS = ("refused", "slow", "unforeseen", "hangs")
STORE_SECONDS = 0.05
"""How long a store takes that gives up in the end: it has a limit of its own, as a source's `check` has."""
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


class Faults:
    """Counts what a request awaits, and makes one of these fail, or one method each time."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.all_seen: Counter[str] = Counter()
        self.at: int | None = None
        self.method = ""
        self.kind = "refused"

    def arm(self, at: int | None, kind: str = "refused") -> None:
        """Begin to count anew, and fail at this await."""
        self.seen, self.at, self.kind = [], at, kind

    async def point(self, name: str) -> None:
        """Pass, or fail here."""
        self.all_seen[name] += 1
        here = False
        if counting.get():
            here = len(self.seen) == self.at
            self.seen.append(name)
        if here or name == self.method:
            await self._fail(name)

    async def _fail(self, name: str) -> None:
        if self.kind == "unforeseen":
            raise OSError(5, f"injected at {name}")
        if self.kind == "hangs" and name == "source.call":
            await anyio.sleep_forever()
        if self.kind != "refused":
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
            await self._faults.point(name)
            return await method(*args, **named)

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
    monkeypatch.setattr(Supervisor, "add", wrap)
    return made
