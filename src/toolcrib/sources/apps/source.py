"""All mini-apps as one source: tools come from the store, calls are posted to each app's public URL."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import anyio

from toolcrib.apps.definition import tool_faults, tool_of
from toolcrib.egress.json_post import JsonPoster, PostResponse, PostResponseTooLarge
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp
from toolcrib.errors import Unavailable
from toolcrib.interfaces import Offer, SourceLink, Withheld
from toolcrib.interfaces.apps import AppRecord, AppTool
from toolcrib.model import APPS, Call, Family, Result, Tool
from toolcrib.sources.apps.call_request import body_of, headers_of
from toolcrib.sources.apps.call_results import error_of, result_of

# Bytes of one response body.
_MOST_BYTES = 8 << 20
# The path of a definition that is validated alone; replaced by its index in the list.
_ALONE = "tools[0]"
_MASK = b"[redacted]"


class ProgressRelay(Protocol):
    """Receives the progress that apps report over their WebSockets."""

    def following(self, call: Call) -> AbstractContextManager[object]:
        """Relay the app's progress for this call while the context is open."""
        ...


@dataclass(frozen=True, slots=True)
class _App:
    """One app: its call URL, its callable tools, and those withheld for faults."""

    record: AppRecord
    url: str | None
    tools: tuple[Tool, ...]
    withheld: tuple[Withheld, ...]


class AppSource:
    """A source with the tools of all apps. A single app can be unreachable; this source never is."""

    mortal = False
    id = APPS
    family: Family = "app"

    def __init__(
        self,
        read: Callable[[], Awaitable[Sequence[AppRecord]]],
        sessions: ProgressRelay,
        post: JsonPoster,
        *,
        timeout: float = 30.0,
        most_bytes: int = _MOST_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.timeout = timeout
        self._read, self._sessions, self._post = read, sessions, post
        self._most_bytes, self._clock = most_bytes, clock
        self._apps: dict[str, _App] = {}
        self._link: SourceLink | None = None
        self._turn = anyio.Lock()
        self._asked = self._served = 0
        """Number of requested refreshes, and the last request that a finished refresh covers."""

    async def run(self, link: SourceLink) -> None:
        """Publish the tools of all apps, then wait until cancelled."""
        self._link = link
        try:
            await self.refresh()
            await anyio.sleep_forever()
        finally:
            self._link = None

    async def refresh(self) -> None:
        """Reload the apps and publish their tools; callers that arrive during a read share the next one."""
        self._asked += 1
        mine = self._asked
        async with self._turn:
            if self._served >= mine:
                return
            asked = self._asked
            self._take(await self._read())
            self._served = asked

    def find(self, package: str) -> AppRecord | None:
        """Return an app from the last snapshot."""
        app = self._apps.get(package)
        return None if app is None else app.record

    def apps(self) -> Sequence[AppRecord]:
        """Return all apps from the last snapshot."""
        return [app.record for app in self._apps.values()]

    async def call(self, call: Call) -> Result:
        """Post the call to its app and parse the response. Retries are up to the caller."""
        app = self._apps.get(call.tool.source)
        if app is None or app.url is None:
            raise _nowhere(call.tool, known=app is not None)
        now = self._clock()
        body = body_of(call, now)
        headers = headers_of(call, body, app.record, now)
        with self._sessions.following(call):
            try:
                reply = await self._post.send(
                    app.url, body, headers, most_bytes=self._most_bytes, giver=app.record.url_giver
                )
            except (NoConnection, ConnectionClosed, NotHttp, PostResponseTooLarge) as error:
                raise error_of(error, call.tool) from error
        return result_of(_discreet(reply, app.record.digest), call.tool)

    async def check(self) -> None:
        """Reload the apps from the store."""
        await self.refresh()

    def details(self) -> Mapping[str, Any]:
        """Return the number of apps."""
        return {"apps": len(self._apps)}

    def _take(self, records: Sequence[AppRecord]) -> None:
        ordered = sorted(records, key=lambda record: (record.created, record.package))
        self._apps = {record.package: _app(record, self._apps.get(record.package)) for record in ordered}
        if self._link is not None:
            tools = [tool for app in self._apps.values() for tool in app.tools]
            withheld = [each for app in self._apps.values() for each in app.withheld]
            self._link.up(Offer(tools=tools, withheld=withheld))


def _app(record: AppRecord, before: _App | None) -> _App:
    """Build one app; an unchanged version reuses its Tool objects, so that per-tool caches stay valid."""
    url = f"{record.public_url.rstrip('/')}/tool" if record.public_url else None
    if before is not None and _edition(before.record) == _edition(record):
        return _App(record, url, before.tools, before.withheld)
    made = [_made(record, tool, place) for place, tool in enumerate(record.tools)]
    tools = tuple(each for each in made if isinstance(each, Tool))
    return _App(record, url, tools, tuple(each for each in made if isinstance(each, Withheld)))


def _edition(record: AppRecord) -> tuple[int, float]:
    """Return what identifies a version of an app; a recreated app counts from version 1 again."""
    return record.version, record.created


def _made(record: AppRecord, tool: AppTool, place: int) -> Tool | Withheld:
    try:
        made = tool_of(record, tool)
        if _is_sound(made):
            return made
    except (AttributeError, KeyError, TypeError, ValueError):  # stored by hand, or under earlier rules
        pass
    said = tool.definition.get("name") or tool.definition.get("id") or f"tools[{place}]"
    # The full validation runs only here: it takes twenty times as long as building the tool.
    fault = next(iter(tool_faults([tool.definition])), "its definition is not one")
    return Withheld(f"{record.package}:{said}", record.package, str(fault).replace(_ALONE, f"tools[{place}]"))


def _is_sound(tool: Tool) -> bool:
    """Whether the stored fields have their declared types; the catalog validates the rest."""
    given: tuple[tuple[object, type], ...] = (
        (tool.description, str),
        (tool.input_schema, dict),
        (tool.extensions, dict),
    )
    return all(isinstance(value, kind) for value, kind in given)


def _discreet(reply: PostResponse, digest: str | None) -> PostResponse:
    """Mask the app's key digest in a response: with it, anyone could call the app on behalf of any user."""
    if digest is None or (shown := digest.encode()) not in reply.body:
        return reply
    return replace(reply, body=reply.body.replace(shown, _MASK))


def _nowhere(tool: Tool, *, known: bool) -> Unavailable:
    why = "has no publicUrl, so its tools cannot be called" if known else "is no longer there"
    return Unavailable(
        "APP_NOT_AVAILABLE", f"{tool.source} {why}; nothing was done", stage="webhook", retryable=False
    )
