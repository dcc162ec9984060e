"""The library API: the whole gateway embedded in a Python program, without a server."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import anyio

from toolcrib.config import Document, default_document, load
from toolcrib.errors import Refused
from toolcrib.formats import FORMATS
from toolcrib.gateway import Declarations, DeclaredTools, ProviderConnection, TurnResult
from toolcrib.gateway import idempotency_key as check_key
from toolcrib.identity import new_key
from toolcrib.model import Caller, JsonObject, Origin, Progress, Result
from toolcrib.names import Style
from toolcrib.observe import ToolUsage
from toolcrib.runtime import Runtime, build
from toolcrib.schemas import too_deep
from toolcrib.sdk import AnyTool
from toolcrib.sdk.signature import deep_copy

OnProgress = Callable[[Progress], Any]

START_SECONDS = 10.0
"""Seconds that opening waits for MCP servers to start; slower ones become available later."""


class Crib:
    """An embedded gateway. Its caller is the program itself, with all permissions.

    `Crib(tools=[...])` stores nothing on disk; `Crib.from_config(path)` is what `toolcrib serve` runs.
    """

    def __init__(
        self,
        tools: Sequence[AnyTool] = (),
        *,
        document: Document | None = None,
        env: Mapping[str, str] | None = None,
        demo: bool = False,
    ) -> None:
        self._env = os.environ if env is None else env
        self._tools, self._demo = tuple(tools), demo
        self._document = document or replace(default_document(self._env), store="sqlite://")
        self._running: AbstractAsyncContextManager[Runtime] | None = None
        self._runtime: Runtime | None = None

    @classmethod
    def from_config(cls, path: str | Path, *, env: Mapping[str, str] | None = None) -> Self:
        """Return a crib from a config file; raises its errors here, with their line."""
        env = os.environ if env is None else env
        return cls(document=load(Path(path), env=env), env=env)

    async def __aenter__(self) -> Self:
        document = self._document
        if document.auth.admin_key is None:
            # No client signs in here, so no admin key has to be generated and stored.
            auth = replace(document.auth, admin_key=new_key())
            document = replace(document, auth=auth, ephemeral_admin_key=True)
        self._running = build(document, env=self._env, tools=self._tools, demo=self._demo)
        self._runtime = await self._running.__aenter__()
        await self._runtime.settled(START_SECONDS)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        running, self._running, self._runtime = self._running, None, None
        return await running.__aexit__(kind, error, trace) if running is not None else None

    @property
    def runtime(self) -> Runtime:
        """The runtime of the open gateway, for access to its internals."""
        if self._runtime is None:
            message = "the crib is not open: use it inside `async with`"
            raise RuntimeError(message)
        return self._runtime

    def tools(
        self,
        *,
        context: str | None = None,
        format: str = "rest",
        style: Style | None = None,
        user: str | None = None,
        search: str = "",
        text: str = "",
    ) -> list[JsonObject]:
        """Return the tools of a context in a format; `search` filters and ranks them.

        If the format's provider accepts fewer tools than found, those that best match `text` are selected.
        """
        return self.declared(
            context=context, format=format, style=style, user=user, search=search, text=text
        ).tools

    def declared(
        self,
        *,
        context: str | None = None,
        format: str = "rest",
        style: Style | None = None,
        user: str | None = None,
        search: str = "",
        text: str = "",
    ) -> DeclaredTools:
        """Return what `tools` does, with the number of tools cut, and those the format cannot represent."""
        if format not in FORMATS:
            raise Refused(
                "INVALID_REQUEST", f"there is no format named {format}; there are {', '.join(FORMATS)}"
            )
        gateway = self.runtime.gateway
        caller = gateway.enter(self.caller(user), context)
        declaring = Declarations(gateway)
        named = declaring.style(caller, format, style)
        found = gateway.search(caller, search)
        declared = declaring.declare(found, caller, format, named, text=text, ranked=bool(search))
        # A copy: the declarations are cached and shared, so the program's changes must not affect others.
        return replace(declared, tools=cast("list[JsonObject]", deep_copy(declared.tools)))

    async def call(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        context: str | None = None,
        user: str | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Result:
        """Call a tool by any of its names. Errors of the call are not raised: see `result.problem`.

        A call with side effects that is repeated with the same `idempotency_key` is executed once.
        """
        try:
            key = check_key(idempotency_key, "idempotency_key")
            caller = self.runtime.gateway.enter(await self.meet(user), context)
            _check_depth(arguments)
        except Refused as error:
            return self.runtime.gateway.refusal(error.problem)
        result = await self.runtime.gateway.call(
            name,
            arguments,
            caller,
            origin=Origin(agent_id="library", face="library"),
            deadline=None if timeout is None else anyio.current_time() + timeout,
            idempotency_key=key,
            report=None if on_progress is None else _progress_reporter(on_progress),
        )
        # A copy: cached results are shared, so the program's changes must not affect others.
        return (
            result.replace(data=deep_copy(result.data), content=deep_copy(result.content))
            if result.cached
            else result
        )

    async def answer(
        self,
        message: object,
        *,
        format: str,
        context: str | None = None,
        user: str | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        on_progress: OnProgress | None = None,
        connection: ProviderConnection | None = None,
    ) -> list[JsonObject]:
        """Run every call of a provider's message; return the reply messages, with one reply per call.

        The message is a mapping, or an object of the provider's SDK. Raises Refused if it is not a message of
        the provider; errors of a call are in its reply. With a `connection`, one message may cancel the
        calls of another.
        """
        turn = await self.turn(
            message,
            format=format,
            context=context,
            user=user,
            timeout=timeout,
            idempotency_key=idempotency_key,
            on_progress=on_progress,
            connection=connection,
        )
        return turn.messages

    async def turn(
        self,
        message: object,
        *,
        format: str,
        context: str | None = None,
        user: str | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        on_progress: OnProgress | None = None,
        connection: ProviderConnection | None = None,
    ) -> TurnResult:
        """Return what `answer` does, with whether to suppress voice output, and suggested follow-ups."""
        caller = self.runtime.gateway.enter(await self.meet(user), context)
        turn = await (connection or self.connection()).turn(
            _message_json(message),
            format,
            caller,
            origin=Origin(agent_id="library", face="library"),
            deadline=None if timeout is None else anyio.current_time() + timeout,
            report=None if on_progress is None else _progress_reporter(on_progress),
            idempotency_key=check_key(idempotency_key, "idempotency_key"),
        )
        return replace(turn, messages=cast("list[JsonObject]", deep_copy(turn.messages)))

    def connection(self) -> ProviderConnection:
        """Return the state of one connection to a provider: its running calls, by the provider's ids."""
        return ProviderConnection(self.runtime.gateway)

    def explain(self, name: str, *, context: str | None = None, user: str | None = None) -> dict[str, Any]:
        """Explain whether a tool may be used and why, and which steps a call would pass."""
        caller = self.runtime.gateway.enter(self.caller(user), context)
        return self.runtime.console.explain(name, caller, everything=True)

    async def usage(
        self, *, since: str | None = None, tool: str | None = None, user: str | None = None
    ) -> dict[str, ToolUsage]:
        """Return the usage of each tool, by canonical name: calls, errors, p50 and p95, last use.

        `since` is a date such as 2030-01-31; `tool` and `user` filter.
        """
        about = None if user is None else _acting(user).id
        found = await self.runtime.console.usage(since=since, tool=tool, caller=about)
        return found["tools"]

    async def meet(self, user: str | None) -> Caller:
        """Return the caller, with the stored data of its user: installed apps and disabled tools."""
        return await self.runtime.identity.people.present(_acting(user))

    def caller(self, user: str | None = None) -> Caller:
        """Return the caller: the program itself, or a user, with that user's data if it is cached."""
        acting = _acting(user)
        return self.runtime.identity.people.known(acting) or acting


def _acting(user: str | None) -> Caller:
    everything = frozenset({"*"})
    return Caller(id=f"user:{user}" if user else "local", user=user, key="local", permissions=everything)


def _message_json(message: object) -> JsonObject:
    """Return a message as JSON; objects of SDKs are pydantic models, which serialize themselves."""
    dump = getattr(message, "model_dump", None)
    plain = dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else message
    if not isinstance(plain, Mapping):
        raise Refused(
            "INVALID_REQUEST", "the message must be a mapping, or a model of an SDK", path="message"
        )
    return dict(cast("Mapping[str, Any]", plain))


def _check_depth(arguments: JsonObject | None) -> None:
    """Refuse arguments too deep for the validator; those over HTTP are checked when they are parsed."""
    found = None if arguments is None else too_deep(arguments)
    if found is not None:
        raise Refused("INVALID_ARGUMENTS", f"arguments {found}; send less", path="arguments")


def _progress_reporter(on_progress: OnProgress) -> Callable[[Progress], Any]:
    async def report(progress: Progress) -> None:
        heard = on_progress(progress)
        if isawaitable(heard):
            await heard

    return report
