"""Routes server-initiated messages (progress, logs, requests) to the in-flight request they belong to."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from math import inf
from typing import Any, cast

import anyio
import orjson

from toolcrib.mcp import jsonrpc, methods
from toolcrib.mcp.meta import forwarded
from toolcrib.mcp.revisions import CAPABILITY_OF_REQUEST, request_error
from toolcrib.model import Json, JsonObject, Progress, Unanswered
from toolcrib.schemas import json_parsing
from toolcrib.sources.mcp.connection import (
    MAX_QUESTION_BYTES,
    ConnectionLost,
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    NotSent,
    RequestCallbacks,
    RequestNotification,
    ServerError,
)

# --- Parsing: responses, server requests, progress ---

MAX_REASON_CHARS = 2_000
"""Maximum characters of an error or progress message."""
_OWN_REPLIES = {
    methods.PING: b"{}",
    methods.LIST_ROOTS: b'{"roots":[]}',
    methods.ELICIT: b'{"action":"decline"}',
}
"""Our own replies to server requests that are not relayed; any other method is not found."""


def parse_message(data: bytes) -> Any:
    """Return the JSON value of a message, of bounded depth and size; raise InvalidResponse for any other."""
    try:
        return json_parsing.parse(data)
    except json_parsing.InvalidJson as fault:
        raise InvalidResponse(f"the message {fault}") from None


def response_outcome(fields: JsonObject) -> JsonObject | ServerError | None:
    """Return the result or the error of a response; None if the message is not a response."""
    error = fields.get("error")
    if error is not None:
        return response_error(error)
    result = fields.get("result")
    if type(result) is dict:
        return cast("JsonObject", result)
    if "result" in fields or (fields.get("jsonrpc") == "2.0" and "id" in fields):
        return InvalidResponse("the answer has no result that is an object")
    return None


def response_error(error: Json) -> ServerError:
    """Convert the `error` member of a response to an exception."""
    if type(error) is not dict:
        return InvalidResponse("the error of the answer is not an object")
    fields = cast("JsonObject", error)
    code, message = fields.get("code"), fields.get("message")
    if type(code) is not int:
        return InvalidResponse("the error of the answer has no code")
    reason = message[:MAX_REASON_CHARS] if isinstance(message, str) else "the server gave no reason"
    return JsonRpcError(code, reason, fields.get("data"))


def own_reply(id: Json, method: str) -> bytes | None:
    """Serialize our own reply to a request of the server; None if its id is not valid."""
    if not (type(id) is int or (type(id) is str and len(id) <= jsonrpc.MAX_ID_CHARS)):
        return None
    if method in _OWN_REPLIES:
        return jsonrpc.encode_response(id, _OWN_REPLIES[method])
    message = f"this client does not answer {method[: jsonrpc.MAX_ID_CHARS]!r}"
    return jsonrpc.encode_error(id, jsonrpc.METHOD_NOT_FOUND, message)


def progress_of(params: JsonObject) -> Progress:
    """Convert the parameters of a progress notification."""
    message = params.get("message")
    return Progress(
        done=_number(params.get("progress")),
        total=_number(params.get("total")),
        message=message[:MAX_REASON_CHARS] if isinstance(message, str) else None,
    )


def _number(value: Any) -> float | None:
    return value if type(value) in {int, float} else None


# --- Routing ---

MAX_PENDING_NOTIFICATIONS = 64
"""Maximum notifications queued per request; the oldest are dropped if the caller is slow."""
MAX_LOG_BYTES = 64 << 10
"""Maximum bytes of a log message that is delivered to a caller."""
MAX_PENDING_QUESTIONS = 16
"""Maximum server requests queued per call; together they have at most MAX_QUESTION_BYTES bytes."""
ANSWER_GRACE_SECONDS = 2.0
"""Maximum seconds by which a server request that outlives the call delays the call's response."""
LATE_MESSAGE_SECONDS = 60.0
"""Seconds after a call in which its late log messages may arrive: no other owner may receive them."""
GATEWAY_METHODS = frozenset(
    {
        methods.INITIALIZE,
        methods.SET_LEVEL,
        methods.PING,
        methods.DISCOVER,
        methods.LISTEN,
        methods.LIST_TOOLS,
        methods.LIST_RESOURCES,
        methods.LIST_TEMPLATES,
        methods.LIST_PROMPTS,
    }
)
"""Methods that the gateway requests for itself: messages about them belong to no caller."""

TrySend = Callable[[bytes], bool]
"""Sends a best-effort message; returns whether it was sent. Must not block."""
SendReply = Callable[[bytes], Awaitable[None]]
"""Delivers a caller's reply; raises a ServerError if that is impossible."""


class PendingQuestion:
    """A server request without a reply, and the call that answers it."""

    __slots__ = ("id", "method", "params", "scope", "size", "target")

    def __init__(self, id: int | str, method: str, params: JsonObject, size: int) -> None:
        self.id, self.method, self.params, self.size = id, method, params, size
        self.target: RequestMessages | None = None
        self.scope: anyio.CancelScope | None = None
        """Set while the caller handles it."""


class RequestMessages:
    """The messages for one request, delivered in its caller's task: a slow caller delays only itself."""

    def __init__(self, callbacks: RequestCallbacks, router: "MessageRouter") -> None:
        self.callbacks = callbacks
        self.questions: deque[PendingQuestion] = deque()
        self._notifications: deque[RequestNotification] = deque(maxlen=MAX_PENDING_NOTIFICATIONS)
        self._router = router
        self._delivering: anyio.CancelScope | None = None
        # A future, not an event: most requests wait here exactly once.
        self._wake: asyncio.Future[None] | None = None
        self._is_closed = False

    def add(self, notification: RequestNotification) -> None:
        """Queue a notification."""
        if not self._is_closed:
            self._notifications.append(notification)
            self._wake_up()

    def ask(self, question: PendingQuestion) -> bool:
        """Queue a server request; return whether the queue accepted it."""
        if self._is_closed or not _fits(self.questions, question):
            return False
        question.target = self
        self.questions.append(question)
        self._wake_up()
        return True

    async def deliver_until(self, response: "asyncio.Future[JsonObject]") -> JsonObject:
        """Deliver messages until the response has arrived and the queues are empty; return the response."""
        try:
            while self._notifications or self.questions or not response.done():
                if self._notifications:
                    await self.flush()
                elif self.questions:
                    await self._answer_question(self.questions.popleft())
                else:
                    self._wake = response.get_loop().create_future()
                    await self._wake
            return response.result()
        finally:
            self._router.refuse(self)

    async def flush(self) -> None:
        """Deliver the queued notifications."""
        while self._notifications:
            await self.callbacks.deliver(self._notifications.popleft())

    async def _answer_question(self, question: PendingQuestion) -> None:
        deadline = anyio.current_time() + ANSWER_GRACE_SECONDS if self._is_closed else inf
        question.scope = anyio.CancelScope(deadline=deadline)
        with question.scope:
            reply = await self._reply(question)
            if self._router.mark_answered(question):
                self._delivering = question.scope
                await self._router.deliver(reply)
        self._delivering = question.scope = None

    async def _reply(self, question: PendingQuestion) -> bytes:
        channel = self.callbacks.channel
        if channel is None:
            return jsonrpc.encode_error(
                question.id, jsonrpc.NO_ANSWER, "no client is connected that could answer this request"
            )
        try:
            answer = orjson.dumps(await channel.ask(question.method, question.params))
            return jsonrpc.encode_response(question.id, answer)
        except Unanswered as refusal:
            return jsonrpc.encode_error(question.id, refusal.code, str(refusal))

    def close(self) -> None:
        """Accept no more messages; a reply in delivery delays the caller by a grace period at most."""
        self._is_closed = True
        if self._delivering is not None:
            self._delivering.deadline = anyio.current_time() + ANSWER_GRACE_SECONDS
        self._wake_up()

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class MessageRouter:
    """The in-flight requests of one connection. Server requests are relayed to callers only after `relay`."""

    def __init__(self, try_send: TrySend, send_reply: SendReply) -> None:
        self._try_send, self._send_reply = try_send, send_reply
        self._relayed: JsonObject | None = None
        self._is_lost = False
        self.has_unrouted = False
        """Set when a caller's request is sent that receives no routed messages."""
        self._last_owner, self._last_at, self._others_at = "", -inf, -inf
        """Owner of the request that began or ended last, and when; when the last of any other owner did."""
        self.in_flight: dict[int, RequestMessages] = {}
        """By request id."""
        self._waiting: dict[int | str, PendingQuestion] = {}
        self._early: list[PendingQuestion] | None = []
        """Server requests between the handshake and the first request that can take them; None afterwards."""

    @property
    def relays(self) -> bool:
        """Whether server requests are relayed to callers."""
        return self._relayed is not None

    def relay(self, capabilities: JsonObject) -> None:
        """Relay server requests from now on, within these client capabilities."""
        self._relayed = capabilities

    def begin(self, request_id: int, callbacks: RequestCallbacks) -> RequestMessages:
        """Register a request; server requests that arrived before the first one are queued for it."""
        messages = self.in_flight[request_id] = RequestMessages(callbacks, self)
        self._record_owner(messages)
        for question in self._early or ():
            messages.ask(question)
        self._early = None
        return messages

    def close(self, request_id: int) -> None:
        """Unregister a request: its response has arrived, or its caller no longer waits."""
        messages = self.in_flight.pop(request_id, None)
        if messages is not None:
            messages.close()
            self._record_owner(messages)
            self.refuse(messages, keep_roots=not self._is_lost)

    def mark_lost(self) -> None:
        """Mark the connection as lost: no server request can be relayed or answered any more."""
        self._is_lost = True

    def refuse(self, messages: RequestMessages, *, keep_roots: bool = False) -> None:
        """Reject the open server requests of a call; if `lasting`, `roots/list` gets a grace period."""
        for question in [each for each in self._waiting.values() if each.target is messages]:
            # Clients list their roots for all later calls, too, so the end of one call does not end it.
            if keep_roots and question.method == methods.LIST_ROOTS:
                if question.scope is not None:
                    question.scope.deadline = anyio.current_time() + ANSWER_GRACE_SECONDS
                continue
            self._drop(question)
            self._refuse(question, jsonrpc.NO_ANSWER, "the call this was asked in is over")

    def of(self, request_id: object) -> RequestMessages | None:
        """Return the messages of the in-flight request with this id."""
        return self.in_flight.get(request_id) if type(request_id) is int else None

    def log(self, params: JsonObject, without_callbacks: int) -> bool:
        """Deliver a log message, which names no request, if only one owner can be meant; return if it was.

        The second argument is the number of requests in flight without callbacks.
        """
        newest = self._newest()
        if newest is None or without_callbacks or self._used_by_other_owner(newest):
            return False
        owner = newest.callbacks.owner
        if len(self.in_flight) > 1 and (
            owner is None or any(each.callbacks.owner != owner for each in self.in_flight.values())
        ):
            return False
        newest.add(params)
        return True

    def _record_owner(self, messages: RequestMessages | None) -> None:
        channel = None if messages is None else messages.callbacks.channel
        owner, now = "" if channel is None else channel.owner, anyio.current_time()
        if owner != self._last_owner:
            self._last_owner, self._others_at = owner, self._last_at
        self._last_at = now

    def _used_by_other_owner(self, messages: RequestMessages) -> bool:
        """Return whether another owner used the connection recently: the message may be about its call."""
        if self.has_unrouted:
            self.has_unrouted = False
            self._record_owner(None)
        owner = "" if messages.callbacks.channel is None else messages.callbacks.channel.owner
        other = self._others_at if owner == self._last_owner else self._last_at
        return anyio.current_time() - other < LATE_MESSAGE_SECONDS

    def ask(self, fields: JsonObject, size: int, target: RequestMessages | None = None) -> bool:
        """Handle a server request; return False if its id is unusable or no reply can be sent."""
        question_id, method = fields["id"], fields["method"]
        own = own_reply(question_id, method)
        if own is None or question_id in self._waiting:
            return False
        if self._relayed is None or method not in CAPABILITY_OF_REQUEST:
            return self._try_send(own)
        params = jsonrpc.params_of(fields)
        violation = request_error(method, params, self._relayed)
        if size > MAX_QUESTION_BYTES:
            violation = (
                jsonrpc.INVALID_PARAMS,
                f"a question may have {MAX_QUESTION_BYTES:,} bytes, and this one has more",
            )
        question = self._waiting[question_id] = PendingQuestion(question_id, method, forwarded(params), size)
        if violation is not None:
            return self._refuse(question, *violation)
        if not self._enqueue(question, target or self._newest()):
            reason = "there is no call to ask this in, or too many wait"
            return self._refuse(question, jsonrpc.NO_ANSWER, reason)
        return True

    def withdraw(self, params: JsonObject) -> None:
        """Drop a request that the server has cancelled."""
        question_id = params.get("requestId")
        question = self._waiting.pop(question_id, None) if isinstance(question_id, int | str) else None
        if question is not None:
            self._drop(question)

    def mark_answered(self, question: PendingQuestion) -> bool:
        """Mark a server request as answered; return whether the server still waits for the reply."""
        if self._waiting.get(question.id) is not question:
            return False
        del self._waiting[question.id]
        return True

    async def deliver(self, reply: bytes) -> None:
        """Send a reply to the server. Ignore its refusal; raise ConnectionLost if the reply was not sent."""
        try:
            await self._send_reply(reply)
        except (JsonRpcError, HttpStatusError):
            return
        except NotSent as fault:
            raise ConnectionLost(str(fault)) from fault

    def _drop(self, question: PendingQuestion) -> None:
        """Cancel a server request that the caller handles, or remove it from its queue."""
        if question.scope is not None:
            question.scope.cancel()
            return
        queue = question.target.questions if question.target is not None else self._early or []
        with suppress(ValueError):  # it has left the queue already
            queue.remove(question)

    def _newest(self) -> RequestMessages | None:
        for messages in reversed(self.in_flight.values()):
            if messages.callbacks.channel is not None:
                return messages
        return None

    def _enqueue(self, question: PendingQuestion, target: RequestMessages | None) -> bool:
        if target is not None:
            return target.ask(question)
        if self._early is None or not _fits(self._early, question):
            return False
        self._early.append(question)
        return True

    def _refuse(self, question: PendingQuestion, code: int, why: str) -> bool:
        self._waiting.pop(question.id, None)
        return self._try_send(jsonrpc.encode_error(question.id, code, why))


def _fits(waiting: Collection[PendingQuestion], question: PendingQuestion) -> bool:
    size = sum(each.size for each in waiting)
    return len(waiting) < MAX_PENDING_QUESTIONS and size + question.size <= MAX_QUESTION_BYTES
