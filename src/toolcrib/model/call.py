"""A call, and the channel to its caller while it runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolcrib.model.caller import Caller
from toolcrib.model.tool import Tool
from toolcrib.model.value import JsonObject, Value

# --- Channel from a running call back to its caller: elicitation requests and log notifications ---


class Unanswered(Exception):
    """A request to the caller failed: undeliverable, or refused by the client. `code` is JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Channel(Protocol):
    """What a source may send to the caller before its result: requests and log notifications.

    Requests and notifications have MCP's format; a caller that supports none has no channel.
    """

    @property
    def owner(self) -> str:
        """Key of the connections this call may share: a session, or a principal in a context."""
        ...

    @property
    def alone(self) -> bool:
        """Whether this call needs a dedicated connection, so that server requests can be attributed to it."""
        ...

    @property
    def capabilities(self) -> JsonObject:
        """Client capabilities as the caller declared them: `elicitation`, `sampling`, `roots`."""
        ...

    @property
    def level(self) -> str | None:
        """Minimum log level of notifications; None if the caller set none."""
        ...

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request (`elicitation/create`, …) and return its result; raises `Unanswered`."""
        ...

    async def log(self, params: JsonObject) -> None:
        """Forward a log notification (`notifications/message`) of the server."""
        ...


# --- A channel decorator with callbacks for the time in which requests to the caller are pending ---


def _do_nothing() -> None:
    pass


class ObservedChannel:
    """Calls `asked` when the first pending request is sent, and `over` when the last one has ended."""

    def __init__(
        self, channel: Channel, asked: Callable[[], None], over: Callable[[], None] = _do_nothing
    ) -> None:
        self._channel, self._on_first, self._on_last = channel, asked, over
        self._waiting = 0

    @property
    def owner(self) -> str:
        """Delegate to the channel."""
        return self._channel.owner

    @property
    def alone(self) -> bool:
        """Delegate to the channel."""
        return self._channel.alone

    @property
    def capabilities(self) -> JsonObject:
        """Delegate to the channel."""
        return self._channel.capabilities

    @property
    def level(self) -> str | None:
        """Delegate to the channel."""
        return self._channel.level

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send the request through the channel."""
        self._waiting += 1
        if self._waiting == 1:
            self._on_first()
        try:
            return await self._channel.ask(method, params)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._on_last()

    async def log(self, params: JsonObject) -> None:
        """Forward the notification."""
        await self._channel.log(params)


# --- A call: one request for one tool, which is already resolved and visible to the caller ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A progress notification of a running call."""

    done: float | None = None
    total: float | None = None
    message: str | None = None
    kind: str = "progress"
    """`progress`, or `waiting` for the spoken sentence of a slow call."""


Report = Callable[[Progress], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Origin(Value):
    """Origin of a call: agent, session, trace, frontend and address."""

    agent_id: str = "unknown"
    agent_version: str = "0"
    session_id: str | None = None
    trace_id: str = ""
    parent: str = ""
    """Parent span id in that trace, 16 hex digits; empty if the trace starts here."""
    sampled: bool = True
    """The sampled flag of the trace."""
    correlation_id: str = ""
    face: str = "library"
    address: str = ""
    """The client's network address; empty for a call that does not come over a network."""
    provider: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class Call(Value):
    """One request. Immutable; a step that needs a different one derives it with `replace`."""

    id: str
    tool: Tool
    arguments: JsonObject
    caller: Caller
    origin: Origin = Origin()
    deadline: float | None = None
    """When the caller stops waiting, in seconds on the event loop's clock."""
    answers: JsonObject = field(default_factory=dict[str, Any])
    """The caller's answers to the questions of an earlier round, by the questions' names."""
    state: str = ""
    """Opaque state the source attached to those questions, to resume the call."""
    idempotency_key: str = ""
    """Chosen by the caller; a repeated request with the same key is executed once."""
    activated: bool = False
    """Whether this call started its app."""
    report: Report | None = None
    channel: Channel | None = None
    """Channel for elicitation and notifications to the caller; None if it supports neither."""
    meta: JsonObject = field(default_factory=dict[str, Any])
    """Vendor data (`_meta`) of the request, passed through."""
