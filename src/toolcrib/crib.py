"""The library's front: the whole gateway inside your own program, without a server."""

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
from toolcrib.sdk.signature import own

OnProgress = Callable[[Progress], Any]

START_SECONDS = 10.0
"""How long opening waits for MCP servers to come up; those that take longer are used once they are there."""


class Crib:
    """A gateway of one's own. Its caller is the program itself, which may use everything.

    `Crib(tools=[...])` keeps nothing; `Crib.from_config(path)` is the gateway `toolcrib serve` would run.
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
        self._house: Runtime | None = None

    @classmethod
    def from_config(cls, path: str | Path, *, env: Mapping[str, str] | None = None) -> Self:
        """Make one from a config file; a fault in it is raised here, with its line."""
        env = os.environ if env is None else env
        return cls(document=load(Path(path), env=env), env=env)

    async def __aenter__(self) -> Self:
        document = self._document
        if document.auth.admin_key is None:
            # Nobody signs in here, so no key needs to be made and kept on disk.
            auth = replace(document.auth, admin_key=new_key())
            document = replace(document, auth=auth, passing_admin_key=True)
        self._running = build(document, env=self._env, tools=self._tools, demo=self._demo)
        self._house = await self._running.__aenter__()
        await self._house.settled(START_SECONDS)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        running, self._running, self._house = self._running, None, None
        return await running.__aexit__(kind, error, trace) if running is not None else None

    @property
    def house(self) -> Runtime:
        """The running gateway behind this front, for whoever needs its doors."""
        if self._house is None:
            message = "the crib is not open: use it inside `async with`"
            raise RuntimeError(message)
        return self._house

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
        """Return the tools of a context, as their reader wants them; `search` keeps those that match.

        Where the reader takes fewer than there are, those that fit the `text` of the conversation are kept.
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
        """Return what `tools` does, with how many were cut, and which the reader cannot be told of."""
        if format not in FORMATS:
            raise Refused(
                "INVALID_REQUEST", f"there is no format named {format}; there are {', '.join(FORMATS)}"
            )
        gateway = self.house.gateway
        caller = gateway.enter(self.caller(user), context)
        declaring = Declarations(gateway)
        named = declaring.style(caller, format, style)
        found = gateway.search(caller, search)
        declared = declaring.declare(found, caller, format, named, text=text, ranked=bool(search))
        # What is spelled is kept for others: what a program does to its own list must not show in theirs.
        return replace(declared, tools=cast("list[JsonObject]", own(declared.tools)))

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
        """Call a tool by any of its names. What goes wrong with it is not raised: see `result.problem`.

        A call that changes something, made twice with one `idempotency_key`, is carried out once.
        """
        try:
            key = check_key(idempotency_key, "idempotency_key")
            caller = self.house.gateway.enter(await self.meet(user), context)
            _check_depth(arguments)
        except Refused as error:
            return self.house.gateway.refusal(error.problem)
        result = await self.house.gateway.call(
            name,
            arguments,
            caller,
            origin=Origin(agent_id="library", face="library"),
            deadline=None if timeout is None else anyio.current_time() + timeout,
            idempotency_key=key,
            report=None if on_progress is None else _reporting(on_progress),
        )
        # Others are given the same kept answer: what a program does to its own must not show in theirs.
        return result.replace(data=own(result.data), content=own(result.content)) if result.cached else result

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
        """Make every call of a provider's message; return the messages that answer it, one reply a call.

        The message is a mapping, or an object of the provider's own SDK. A message that is none of the
        provider's is refused; what goes wrong with a call is told in its reply. With a `connection`, one
        message may take back what another asks for.
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
        """Return what `answer` does, with whether a tool wants silence, and what may be asked next."""
        caller = self.house.gateway.enter(await self.meet(user), context)
        turn = await (connection or self.connection()).turn(
            _plain(message),
            format,
            caller,
            origin=Origin(agent_id="library", face="library"),
            deadline=None if timeout is None else anyio.current_time() + timeout,
            report=None if on_progress is None else _reporting(on_progress),
            idempotency_key=check_key(idempotency_key, "idempotency_key"),
        )
        return replace(turn, messages=cast("list[JsonObject]", own(turn.messages)))

    def connection(self) -> ProviderConnection:
        """Return what knows the calls of one connection to a provider, for as long as that lasts."""
        return ProviderConnection(self.house.gateway, self.house.conversations)

    def explain(self, name: str, *, context: str | None = None, user: str | None = None) -> dict[str, Any]:
        """Say whether a tool may be used, why, and which steps a call would pass."""
        caller = self.house.gateway.enter(self.caller(user), context)
        return self.house.console.explain(name, caller, everything=True)

    async def usage(
        self, *, since: str | None = None, tool: str | None = None, user: str | None = None
    ) -> dict[str, ToolUsage]:
        """Return how much each tool was used, by canonical name: calls, errors, p50 and p95, last use.

        `since` is a day such as 2030-01-31; `tool` and `user` leave out all others.
        """
        about = None if user is None else _acting(user).id
        found = await self.house.console.usage(since=since, tool=tool, caller=about)
        return found["tools"]

    async def meet(self, user: str | None) -> Caller:
        """Return who calls, with all that is stored of a user: what is installed, what is switched off."""
        return await self.house.identity.people.present(_acting(user))

    def caller(self, user: str | None = None) -> Caller:
        """Return who calls: the program itself, or a user it acts for, as far as that one was met."""
        acting = _acting(user)
        return self.house.identity.people.known(acting) or acting


def _acting(user: str | None) -> Caller:
    everything = frozenset({"*"})
    return Caller(id=f"user:{user}" if user else "local", user=user, key="local", permissions=everything)


def _plain(message: object) -> JsonObject:
    """Return a message as JSON has it; those of SDKs are models that know how they are spelled."""
    dump = getattr(message, "model_dump", None)
    plain = dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else message
    if not isinstance(plain, Mapping):
        raise Refused(
            "INVALID_REQUEST", "the message must be a mapping, or a model of an SDK", path="message"
        )
    return dict(cast("Mapping[str, Any]", plain))


def _check_depth(arguments: JsonObject | None) -> None:
    """Refuse what the validator could not walk; what comes by HTTP is checked as it is read."""
    found = None if arguments is None else too_deep(arguments)
    if found is not None:
        raise Refused("INVALID_ARGUMENTS", f"arguments {found}; send less", path="arguments")


def _reporting(on_progress: OnProgress) -> Callable[[Progress], Any]:
    async def report(progress: Progress) -> None:
        heard = on_progress(progress)
        if isawaitable(heard):
            await heard

    return report
