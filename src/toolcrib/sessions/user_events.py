"""Events of a user's session, for apps and for devices."""

from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
import orjson

from toolcrib.apps.messages import TRANSCRIPTION
from toolcrib.errors import Refused
from toolcrib.slots import DEFAULT_SHARE, Slots

# --- Matches transcriptions to the stream subscriptions of an app ---

_ALL_STREAMS = ("all", "*")
_ANY_LANGUAGE = "auto"


def matching_stream(streams: Iterable[str], language: str | None) -> str | None:
    """Return the subscription that best matches a transcription's language; None if none does.

    `transcription` matches any language; `transcription:en-US` matches exactly that tag first, then
    other variants of English: apps subscribe to their author's variant, and users speak their own.
    """
    fits = [(_match_rank(stream, language), stream) for stream in streams]
    best = max(fits, key=lambda each: each[0], default=(0, ""))
    return best[1] if best[0] else None


def _match_rank(stream: str, language: str | None) -> int:
    kind, _, wanted = stream.partition("?")[0].partition(":")
    if kind in _ALL_STREAMS:
        return 1
    if kind != TRANSCRIPTION:
        return 0
    if not wanted or wanted == _ANY_LANGUAGE or not language:
        return 2
    wanted, language = wanted.lower(), language.lower()
    if wanted == language:
        return 4
    return 3 if wanted.partition("-")[0] == language.partition("-")[0] else 0


# --- Event stream to a user's devices: fan-out to all listeners, without waiting for any of them ---

UserEventKind = Literal["display", "speak", "tool", "app"]

MAX_USER_LISTENERS = 16
"""Concurrent listeners per user."""
MAX_QUEUED_EVENTS = 512
"""Queued events per listener."""
MAX_QUEUED_EVENT_BYTES = 8 << 20
"""Bytes of queued events per listener; images are large."""


@dataclass(frozen=True, slots=True)
class UserEvent:
    """An event for a user's devices: display, speech, progress of a tool call, or state of an app."""

    kind: UserEventKind
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


class EventListener:
    """Queue of one listener. A slow listener loses the oldest events and receives their number."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[UserEvent, int]] = deque()
        self._lost = self._bytes = 0
        self._arrival = anyio.Event()

    def put(self, event: UserEvent, size: int) -> None:
        """Enqueue an event of this size in bytes."""
        self._waiting.append((event, size))
        self._bytes += size
        while len(self._waiting) > MAX_QUEUED_EVENTS or self._bytes > MAX_QUEUED_EVENT_BYTES:
            self._take()
            self._lost += 1
        self._arrival.set()

    def _take(self) -> UserEvent:
        event, size = self._waiting.popleft()
        self._bytes -= size
        return event

    def __aiter__(self) -> "EventListener":
        return self

    async def __anext__(self) -> UserEvent:
        """Return the next event, waiting for one if the queue is empty."""
        while not self._waiting:
            self._arrival = anyio.Event()
            await self._arrival.wait()
        if self._lost:
            lost, self._lost = self._lost, 0
            return UserEvent("app", {"lost": lost})
        return self._take()


class EventHub:
    """Listeners by user. A user without listeners costs nothing."""

    def __init__(self, share: float = DEFAULT_SHARE) -> None:
        self._share = share
        self._listeners: dict[str, list[EventListener]] = {}
        self._slots: dict[str, Slots] = {}
        """Listener slots of each user, shared among the keys that listen."""

    @asynccontextmanager
    async def listen(self, user: str, principal: str) -> AsyncGenerator[EventListener]:
        """Subscribe to the events for a user's devices while the context is open."""
        slots = self._slots.setdefault(user, Slots(MAX_USER_LISTENERS, self._share))
        if not slots.take(principal):
            message = f"{slots.used} devices listen already; {slots.per_principal} of one key may"
            raise Refused("OVERLOADED", message)
        listeners, listener = self._listeners.setdefault(user, []), EventListener()
        listeners.append(listener)
        try:
            yield listener
        finally:
            slots.release(principal)
            listeners.remove(listener)
            if not listeners:
                del self._listeners[user], self._slots[user]

    def publish(self, user: str, event: UserEvent) -> None:
        """Publish an event to all listeners of a user."""
        listeners = self._listeners.get(user)
        if not listeners:
            return
        size = len(orjson.dumps(dict(event.data)))
        for listener in listeners:
            listener.put(event, size)

    def has_listeners(self, user: str) -> bool:
        """Whether a user has listeners."""
        return user in self._listeners

    def __iter__(self) -> Iterator[str]:
        return iter(self._listeners)

    def __len__(self) -> int:
        return len(self._listeners)
