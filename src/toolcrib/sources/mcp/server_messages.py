"""Leads what a server says of its own accord to the request it belongs to, and its questions to a caller."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from math import inf

import anyio

from toolcrib.model import JsonObject, Unanswered
from toolcrib.sources.mcp.errors import ConnectionLost, HttpStatusError, JsonRpcError, NotSent
from toolcrib.sources.mcp.jsonrpc import encode_answer, encode_error
from toolcrib.sources.mcp.message_parsing import params_of, reply
from toolcrib.sources.mcp.relayed_requests import (
    ASKED_BY,
    INVALID_PARAMS,
    LARGEST_QUESTION,
    NO_ANSWER,
    unfit,
)
from toolcrib.sources.mcp.request_callbacks import News, RequestCallbacks
from toolcrib.sources.mcp.request_meta import carried

MOST_NEWS = 64
"""How much is kept for a caller that is slow to take it; the newest counts."""
LARGEST_LOG = 64 << 10
"""The most bytes of a log message that is passed on."""
MOST_QUESTIONS = 16
"""How many questions may wait for one caller; together they may have as many bytes as the largest of all."""
LINGER = 2.0
"""How long an answer may be held up by a question that outlasts it, in seconds."""
AFTERWARDS = 60.0
"""How long a server may still say something of a call that is over, in seconds: nobody else shall hear it."""
NOBODYS = frozenset(
    {
        "initialize",
        "logging/setLevel",
        "ping",
        "server/discover",
        "subscriptions/listen",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    }
)
"""What we ask for ourselves, so that nothing a server says of it is anybody's."""
LASTING = "roots/list"
"""What a server asks for all the calls to come, so that the end of one is not the end of it."""

Say = Callable[[bytes], bool]
"""Says something that may be left out; whether it was said. Must not wait."""
Answer = Callable[[bytes], Awaitable[None]]
"""Delivers a caller's answer; raises a fault where that cannot be done."""


class PendingQuestion:
    """One that was not answered yet, and whose it is to answer."""

    __slots__ = ("id", "method", "params", "scope", "size", "whose")

    def __init__(self, id: int | str, method: str, params: JsonObject, size: int) -> None:
        self.id, self.method, self.params, self.size = id, method, params, size
        self.whose: RequestMessages | None = None
        self.scope: anyio.CancelScope | None = None
        """While it is being put."""


class RequestMessages:
    """What has come for one request, passed on in the task of its caller: a slow one slows only itself."""

    def __init__(self, ear: RequestCallbacks, hearings: "MessageRouter") -> None:
        self.ear = ear
        self.questions: deque[PendingQuestion] = deque()
        self._news: deque[News] = deque(maxlen=MOST_NEWS)
        self._hearings = hearings
        self._delivering: anyio.CancelScope | None = None
        # A future, not an event: most requests wait here exactly once.
        self._wake: asyncio.Future[None] | None = None
        self._over = False

    def add(self, news: News) -> None:
        """Keep something to be passed on."""
        if not self._over:
            self._news.append(news)
            self._stir()

    def ask(self, question: PendingQuestion) -> bool:
        """Keep a question to be put; whether there was room."""
        if self._over or not _has_room(self.questions, question):
            return False
        question.whose = self
        self.questions.append(question)
        self._stir()
        return True

    async def listen(self, answer: "asyncio.Future[JsonObject]") -> JsonObject:
        """Pass on what comes until the answer is there and this is closed; return the answer."""
        try:
            while self._news or self.questions or not answer.done():
                if self._news:
                    await self.flush()
                elif self.questions:
                    await self._put(self.questions.popleft())
                else:
                    self._wake = answer.get_loop().create_future()
                    await self._wake
            return answer.result()
        finally:
            self._hearings.refuse(self)

    async def flush(self) -> None:
        """Pass on what has come so far."""
        while self._news:
            await self.ear.hear(self._news.popleft())

    async def _put(self, question: PendingQuestion) -> None:
        question.scope = anyio.CancelScope(deadline=anyio.current_time() + LINGER if self._over else inf)
        with question.scope:
            said = await self._said(question)
            if self._hearings.settled(question):
                self._delivering = question.scope
                await self._hearings.deliver(said)
        self._delivering = question.scope = None

    async def _said(self, question: PendingQuestion) -> bytes:
        channel = self.ear.channel
        if channel is None:
            return encode_error(question.id, NO_ANSWER, "nobody is there to be asked")
        try:
            return encode_answer(question.id, await channel.ask(question.method, question.params))
        except Unanswered as refusal:
            return encode_error(question.id, refusal.code, str(refusal))

    def close(self) -> None:
        """Let the caller go: after its answer, no news can hold it up."""
        self._over = True
        if self._delivering is not None:
            self._delivering.deadline = anyio.current_time() + LINGER
        self._stir()

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class MessageRouter:
    """All who listen on one connection. Nobody is asked anything on one that does not relay."""

    def __init__(self, say: Say, answer: Answer) -> None:
        self._say, self._answer = say, answer
        self._relayed: JsonObject | None = None
        self._shut = False
        self.unheard = False
        """Set where a caller's request is made on whose behalf nobody listens."""
        self._last, self._last_at, self._others_at = "", -inf, -inf
        """Whose request began or ended last and when; and when the last of anybody else did."""
        self.open: dict[int, RequestMessages] = {}
        """By the number of the request."""
        self._waiting: dict[int | str, PendingQuestion] = {}
        self._held: list[PendingQuestion] | None = []
        """Asked right after the greeting, before the first request that could take it; None from then on."""

    @property
    def relays(self) -> bool:
        """Whether callers are asked what the server asks."""
        return self._relayed is not None

    def relay(self, capabilities: JsonObject) -> None:
        """Put to callers, from now on, what can be asked of those with these capabilities."""
        self._relayed = capabilities

    def begin(self, number: int, ear: RequestCallbacks) -> RequestMessages:
        """Listen on behalf of a request; what was asked before the first of them is asked now."""
        hearing = self.open[number] = RequestMessages(ear, self)
        self._note(hearing)
        for question in self._held or ():
            hearing.ask(question)
        self._held = None
        return hearing

    def close(self, number: int) -> None:
        """Listen no longer: the answer is there, or nobody waits for it."""
        hearing = self.open.pop(number, None)
        if hearing is not None:
            hearing.close()
            self._note(hearing)
            self.refuse(hearing, lasting=not self._shut)

    def shut(self) -> None:
        """Take note that the connection is gone, and nothing can be asked or answered any more."""
        self._shut = True

    def refuse(self, hearing: RequestMessages, *, lasting: bool = False) -> None:
        """Tell the server that nobody answers what was asked in a call; but what lasts may last a little."""
        for question in [each for each in self._waiting.values() if each.whose is hearing]:
            if lasting and question.method == LASTING:
                if question.scope is not None:
                    question.scope.deadline = anyio.current_time() + LINGER
                continue
            self._drop(question)
            self._refuse(question, NO_ANSWER, "the call this was asked in is over")

    def of(self, number: object) -> RequestMessages | None:
        """Return who listens on behalf of a request."""
        return self.open.get(number) if type(number) is int else None

    def log(self, params: JsonObject, strangers: int) -> bool:
        """Take a message that names no request; only where it can be nobody else's. Whether it was taken.

        `strangers` is how many requests run on whose behalf nobody listens.
        """
        newest = self._newest()
        if newest is None or strangers or self._was_anothers(newest):
            return False
        owner = newest.ear.owner
        if len(self.open) > 1 and (
            owner is None or any(each.ear.owner != owner for each in self.open.values())
        ):
            return False
        newest.add(params)
        return True

    def _note(self, hearing: RequestMessages | None) -> None:
        channel = None if hearing is None else hearing.ear.channel
        owner, now = "" if channel is None else channel.owner, anyio.current_time()
        if owner != self._last:
            self._last, self._others_at = owner, self._last_at
        self._last_at = now

    def _was_anothers(self, hearing: RequestMessages) -> bool:
        """Whether the connection was somebody else's a moment ago, of whose call a message may be."""
        if self.unheard:
            self.unheard = False
            self._note(None)
        owner = "" if hearing.ear.channel is None else hearing.ear.channel.owner
        other = self._others_at if owner == self._last else self._last_at
        return anyio.current_time() - other < AFTERWARDS

    def ask(self, fields: JsonObject, size: int, whose: RequestMessages | None = None) -> bool:
        """Take a question of the server; False where it has no id to answer by, or nothing can be said."""
        name, method = fields["id"], fields["method"]
        stock = reply(name, method)
        if stock is None or name in self._waiting:
            return False
        if self._relayed is None or method not in ASKED_BY:
            return self._say(stock)
        params = params_of(fields)
        wrong = unfit(method, params, self._relayed)
        if size > LARGEST_QUESTION:
            wrong = INVALID_PARAMS, f"a question may have {LARGEST_QUESTION:,} bytes, and this one has more"
        question = self._waiting[name] = PendingQuestion(name, method, carried(params), size)
        if wrong is not None:
            return self._refuse(question, *wrong)
        if not self._take(question, whose or self._newest()):
            return self._refuse(question, NO_ANSWER, "there is no call to ask this in, or too many wait")
        return True

    def withdraw(self, params: JsonObject) -> None:
        """Take note that the server does not want to know any more."""
        name = params.get("requestId")
        question = self._waiting.pop(name, None) if isinstance(name, int | str) else None
        if question is not None:
            self._drop(question)

    def settled(self, question: PendingQuestion) -> bool:
        """Take note that a question has its answer; whether the server still waits for it."""
        if self._waiting.get(question.id) is not question:
            return False
        del self._waiting[question.id]
        return True

    async def deliver(self, said: bytes) -> None:
        """Give the server an answer. One it does not want is its own affair; one it never got is ours."""
        try:
            await self._answer(said)
        except (JsonRpcError, HttpStatusError):
            return
        except NotSent as fault:
            raise ConnectionLost(str(fault)) from fault

    def _drop(self, question: PendingQuestion) -> None:
        """Ask it no longer, or not at all."""
        if question.scope is not None:
            question.scope.cancel()
            return
        queue = question.whose.questions if question.whose is not None else self._held or []
        with suppress(ValueError):  # its turn is over already
            queue.remove(question)

    def _newest(self) -> RequestMessages | None:
        for hearing in reversed(self.open.values()):
            if hearing.ear.channel is not None:
                return hearing
        return None

    def _take(self, question: PendingQuestion, whose: RequestMessages | None) -> bool:
        if whose is not None:
            return whose.ask(question)
        if self._held is None or not _has_room(self._held, question):
            return False
        self._held.append(question)
        return True

    def _refuse(self, question: PendingQuestion, code: int, why: str) -> bool:
        self._waiting.pop(question.id, None)
        return self._say(encode_error(question.id, code, why))


def _has_room(waiting: Collection[PendingQuestion], question: PendingQuestion) -> bool:
    size = sum(each.size for each in waiting)
    return len(waiting) < MOST_QUESTIONS and size + question.size <= LARGEST_QUESTION
