"""Interface of a connection to an MCP server: requests, callbacks, tasks and errors."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVarTuple, cast

from anyio.abc import TaskGroup

from toolcrib.background_tasks import background_tasks
from toolcrib.mcp.revisions import RELAYS, Era, Relay
from toolcrib.model import Channel, Json, JsonObject, Progress, Report, Slow

# --- Errors between the gateway and a server, before they are mapped to the error of a tool call ---


class ServerError(Exception):
    """A failed exchange with a server. The message is fit for callers."""


class NotSent(ServerError):
    """Nothing reached the server: a retry is safe for every tool."""


class ConnectionLost(ServerError):
    """The request was sent, and its response cannot arrive any more."""


class JsonRpcError(ServerError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class HttpStatusError(ServerError):
    """The server answered with an HTTP status that is not a success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ResponseTooLarge(ServerError):
    """The response exceeds the size limit; the rest of it was not read."""


class InvalidResponse(ServerError):
    """The response violates the protocol: not JSON, nested too deeply, or of the wrong shape."""


# --- Settings of one MCP server: its limits, which of its tools are served, and how ---

Transport = Literal["stdio", "http", "sse"]

_PROGRAM_RELAYS: frozenset[Relay] = frozenset({"elicitation", "sampling"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """Operator's settings of one tool; None leaves the server's value."""

    expose_as: str | None = None
    description: str | None = None
    speech_field: str | None = None
    speech_template: str | None = None
    timeout: float | None = None
    slow: Slow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """Settings of one server. Times are in seconds."""

    id: str
    transport: Transport = "stdio"
    start_timeout: float = 30.0
    """From the start to the list of tools; it bounds every later list, too."""
    timeout: float = 10.0
    """Timeout of one call, unless its tool has its own."""
    poll: float | None = None
    """Poll interval of the lists. None or 0: every minute, for lists without change notifications."""
    slow: Slow | None = None
    tools: Mapping[str, ToolSettings] = field(default_factory=dict[str, ToolSettings])
    """By the server's own names. Empty: all tools are served. Otherwise an allowlist."""
    relay: frozenset[Relay] | None = None
    """Server requests that are relayed to callers. None: all, but no roots for a program (stdio).

    A program may use roots as permission for local paths, but it runs on our machine, not on the caller's.
    """
    max_owner_connections: int = 8
    """Maximum dedicated connections for interactive callers, besides the one that all others share."""
    owner_idle_timeout: float = 24.0
    """Idle timeout of such a connection: with the three steps of ending a program, 30 s."""
    gateway: str = ""
    """Id of our own gateway: detects a server, or a tool of one, that leads back to it."""
    redact: Callable[[str], str] = str
    """Redacts secrets in server messages before they reach the log or, as an error, a caller."""

    @property
    def relays(self) -> frozenset[Relay]:
        """The server requests that are relayed, with the default applied."""
        if self.relay is not None:
            return self.relay
        return _PROGRAM_RELAYS if self.transport == "stdio" else frozenset(RELAYS)


# --- Callbacks of a request in flight: progress, log messages and server requests for its caller ---

RequestNotification = Progress | JsonObject
"""Progress, or a log message: the parameters of `notifications/message`."""


@dataclass(frozen=True, slots=True)
class RequestCallbacks:
    """Callbacks to one caller: progress to `report`, everything else to the `channel`."""

    report: Report | None = None
    channel: Channel | None = None
    redact: Callable[[str], str] = str
    """Redacts the operator's secrets: a server's log messages are meant for its operator."""

    @property
    def owner(self) -> str | None:
        """Owner of the calls that may receive each other's log messages; None if this call shares none."""
        return None if self.channel is None or self.channel.alone else self.channel.owner

    async def deliver(self, notification: RequestNotification) -> None:
        """Deliver progress or a log message, if there is a callback for it."""
        if isinstance(notification, Progress):
            if self.report is not None:
                message = notification.message
                await self.report(
                    notification if message is None else replace(notification, message=self.redact(message))
                )
        elif self.channel is not None:
            await self.channel.log(cast("JsonObject", redacted(notification, self.redact)))


def redacted(value: Json, redact: Callable[[str], str]) -> Json:
    """Return a value with all strings redacted; its depth is bounded, as a message's is."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted(each, redact) for each in cast("list[Json]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {redact(key): redacted(each, redact) for key, each in members.items()}
    return value


# --- The interface of every transport: one open connection that carries any number of concurrent requests

MAX_QUESTION_BYTES = 1 << 20
"""Maximum bytes of one server request."""
Notify = Callable[[str, JsonObject], None]
"""Callback for each notification that belongs to no request: its method and parameters. Must not block."""


class Connection(Protocol):
    """A connection to one server. Any task may use it; one task opens, owns and closes it."""

    def use_revision(self, era: Era, revision: str) -> None:
        """Use this era and revision from now on; the initial era is modern, for the discovery request."""
        ...

    def relay(self, capabilities: JsonObject) -> None:
        """Relay the server's requests to a caller with a request in flight, within these capabilities.

        For connections with requests of one owner only; before this call, no server request is relayed.
        """
        ...

    async def request(
        self,
        method: str,
        params: bytes,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        callbacks: RequestCallbacks | None = None,
    ) -> JsonObject:
        """Send a request with parameters that are serialized already (a JSON object); return its result.

        Raises a ServerError. Cancelling the caller cancels the request at the server. `name` is the tool's,
        for transports that send it in a header, too; the same transports send `headers`. Server messages for
        this request go to the callbacks, in the caller's task; if these want progress, a progress token is
        added to the parameters.
        """
        ...

    async def notify(self, method: str, params: bytes) -> None:
        """Send a notification."""
        ...

    async def receive(self) -> None:
        """Receive unsolicited messages until the connection ends; return early if the transport cannot."""
        ...

    async def lost(self) -> str:
        """Wait until the connection is lost for good; return the reason.

        Raises ServerMisbehaved if it was closed because the server flooded it with messages.
        """
        ...

    def details(self) -> Mapping[str, Any]:
        """Return the status fields for operators: process, standard error, session. Never a secret."""
        ...


def dropped(connection: Connection | None) -> int:
    """Return the number of server messages that a connection's rate limit dropped."""
    return 0 if connection is None else connection.details().get("dropped_messages", 0)


Dial = Callable[[Notify], AbstractAsyncContextManager[Connection]]
"""Opens a connection; leaving the context closes it gracefully and releases everything it started."""


# --- Background tasks of a connection: bounded in number, and cancelled when the connection ends ---

Args = TypeVarTuple("Args")


class ConnectionTasks:
    """The running tasks. A task handles its own errors; an exception that it raises ends the connection."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._running = 0
        self._closed = False

    def start(self, job: Callable[[*Args], Awaitable[None]], *args: *Args, max_running: int = 64) -> bool:
        """Start a task unless `most` are running or all are closed; return whether it was started."""
        if self._closed or self._running >= max_running:
            return False
        self._running += 1
        self._tasks.start_soon(self._run, job, args)
        return True

    async def _run(self, job: Callable[..., Awaitable[None]], args: tuple[object, ...]) -> None:
        try:
            await job(*args)
        finally:
            self._running -= 1

    def close(self) -> None:
        """Cancel the running tasks and start no more."""
        self._closed = True
        self._tasks.cancel_scope.cancel()


@asynccontextmanager
async def background() -> AsyncGenerator[ConnectionTasks]:
    """Run background tasks for the block's duration; the block's own exception is not wrapped in a group."""
    async with background_tasks() as tasks:
        jobs = ConnectionTasks(tasks)
        try:
            yield jobs
        finally:
            jobs.close()
