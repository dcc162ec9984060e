"""The remote backend: a running gateway, over its REST API."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast
from urllib.parse import quote

import anyio
import orjson
from yarl import URL

from toolcrib.cli.backend import KEY_VARIABLE, AuditFilters, CallerView, OnProgress
from toolcrib.egress import Egress
from toolcrib.egress.client import Client
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp, Response
from toolcrib.errors import CODES, Broken, Lost, Refused, Unavailable
from toolcrib.model import JsonObject, Progress
from toolcrib.names import fold
from toolcrib.version import VERSION

CONNECT_SECONDS = 10
MAX_SILENCE_SECONDS = 60
"""Maximum time without data; while a call runs, the gateway sends something every 15 seconds."""

_APPS_PER_PAGE = 1000


@asynccontextmanager
async def remote_backend(url: str, key: str) -> AsyncGenerator["RemoteBackend"]:
    """Connect to a gateway while the block runs."""
    async with gateway_client(url, key) as client:
        yield RemoteBackend(client, url)


def gateway_client(url: str, key: str) -> Client:
    """Return the HTTP client of a gateway, a context manager."""
    headers = {
        "Authorization": f"Bearer {key}",
        "X-Agent-Id": "toolcrib-cli",
        "X-Agent-Version": VERSION,
        "User-Agent": f"toolcrib/{VERSION}",
    }
    unguarded = Egress(guarded=False)
    return Client(
        URL(url), headers, unguarded, content_type="application/json", connect_seconds=CONNECT_SECONDS
    )


class RemoteBackend:
    """The `Backend` of a running gateway."""

    def __init__(self, client: Client, url: str) -> None:
        self._client, self._url = client, url

    async def listing(
        self,
        view: CallerView,
        *,
        format: str | None = None,
        style: str | None = None,
        search: str | None = None,
    ) -> JsonObject:
        query = {"context": view.context, "format": format, "style": style, "q": search}
        return await self._ask("GET", "/api/tools", query=query, user=view.user)

    async def tools(self, view: CallerView) -> list[JsonObject]:
        return (await self.listing(view))["tools"]

    async def tool(self, name: str, view: CallerView) -> JsonObject | None:
        wanted = fold(name)
        for tool in await self.tools(view):
            names = (tool["name"], *tool["names"].values(), *tool.get("aliases", ()))
            if any(fold(each) == wanted for each in names):
                return tool
        return None

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        view: CallerView,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> JsonObject:
        fields = {"name": name, "arguments": arguments, "context": view.context}
        body = _without_none({**fields, "idempotencyKey": idempotency_key})
        wait = None if timeout is None else {"X-Timeout-Ms": str(max(1, round(timeout * 1000)))}
        headers = _without_none({"Accept": "text/event-stream", "X-User-Id": view.user}) | (wait or {})
        async with self._sent("POST", "/api/tools/execute", body=body, headers=headers) as response:
            if response.content_type != "text/event-stream":
                return await self._read(response)
            async with aclosing(read_events(response)) as events:
                async for event, data in events:
                    if event == "result":
                        return data
                    if on_progress is not None:
                        on_progress(Progress(kind=event, **data))
        raise Lost(
            "OUTCOME_UNKNOWN", "the gateway disconnected before the result; the call may have taken effect"
        )

    async def explain(self, name: str, view: CallerView) -> JsonObject:
        query = {"name": name, "context": view.context, "user": view.user}
        return await self._ask("GET", "/api/explain", query=query)

    async def status(self) -> JsonObject:
        return await self._ask("GET", "/api/status")

    async def usage(self) -> JsonObject:
        return await self._ask("GET", "/api/usage")

    async def keys(self) -> Sequence[JsonObject]:
        found: list[JsonObject] = []
        after: str | None = None
        while True:
            answer = await self._ask("GET", "/api/keys", query={"after": after})
            found += answer["keys"]
            after = answer.get("next")
            if after is None:
                return found

    async def create_key(
        self,
        name: str,
        *,
        permissions: Sequence[str],
        contexts: Sequence[str] | None,
        home: str,
        act_as: bool,
        user: str | None,
        expires: float | None,
    ) -> JsonObject:
        reach = {"permissions": permissions, "contexts": contexts, "home": home}
        body = {"name": name, **reach, "actAs": act_as, "user": user, "expires": expires}
        return await self._ask("POST", "/api/keys", body=_without_none(body))

    async def rotate_key(self, name: str, overlap: float) -> JsonObject:
        body = {"overlapSeconds": overlap} if overlap else None
        return await self._ask("POST", f"/api/keys/{quote(name, safe='')}/rotate", body=body)

    async def revoke_key(self, name: str) -> None:
        await self._ask("DELETE", f"/api/keys/{quote(name, safe='')}")

    async def audit(self, filters: AuditFilters) -> list[JsonObject]:
        query = {name: None if value is None else str(value) for name, value in filters.items()}
        answer = await self._ask("GET", "/api/audit", query=query)
        return answer["records"]

    async def pins(self) -> Sequence[JsonObject]:
        answer = await self._ask("GET", "/api/pins")
        return answer["pins"]

    async def approve(self, name: str, seal: str | None) -> JsonObject:
        return await self._ask("POST", "/api/pins", body=_without_none({"name": name, "seal": seal}))

    async def apps(self) -> Sequence[JsonObject]:
        found: list[JsonObject] = []
        while True:
            after = found[-1]["packageName"] if found else None
            answer = await self._ask("GET", "/api/apps", query={"after": after, "limit": str(_APPS_PER_PAGE)})
            found += answer["apps"]
            if len(answer["apps"]) < _APPS_PER_PAGE:
                return found

    async def define_tools(self, package: str, tools: Sequence[JsonObject]) -> JsonObject:
        return await self._ask(
            "POST", f"/api/apps/{quote(package, safe='')}/tools", body={"tools": list(tools)}
        )

    async def sign_in_link(self) -> str:
        """Create a one-time sign-in link for the web page."""
        answer = await self._ask("POST", "/api/signin")
        return str(answer["url"])

    async def reload(self, *, dry_run: bool) -> JsonObject:
        """Reload the config; return the changes."""
        return await self._ask("POST", "/reload", query={"dry_run": "true" if dry_run else None})

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: JsonObject | None = None,
        body: JsonObject | None = None,
        user: str | None = None,
    ) -> dict[str, Any]:
        """Send a request and return the response body; an error response is raised."""
        headers = _without_none({"X-User-Id": user})
        async with self._sent(method, path, query=query, body=body, headers=headers) as response:
            answer = await self._read(response)
        if response.status < 400:
            return answer
        raise refused_error(answer["error"])

    @asynccontextmanager
    async def _sent(
        self,
        method: str,
        path: str,
        *,
        query: JsonObject | None = None,
        body: JsonObject | None = None,
        headers: Mapping[str, str],
    ) -> AsyncGenerator[Response]:
        url = URL(self._url + path).with_query(_without_none(query or {}))
        data = None if body is None else orjson.dumps(body)
        try:
            with anyio.fail_after(MAX_SILENCE_SECONDS):
                response = await self._client.send(method, url, headers, data)
            try:
                yield response
            finally:
                response.close()
        except TimeoutError as error:
            message = f"{self._url} does not respond; a call may have taken effect"
            raise Lost("OUTCOME_UNKNOWN", message) from error
        except NoConnection as error:
            message = (
                f"no gateway responds at {self._url}; start one with `toolcrib serve`, or correct the URL"
            )
            raise Unavailable("NETWORK_ERROR", message) from error
        except (ConnectionClosed, NotHttp) as error:
            message = f"the connection to {self._url} failed ({error}); a call may have taken effect"
            raise Lost("OUTCOME_UNKNOWN", message) from error

    async def _read(self, response: Response) -> dict[str, Any]:
        try:
            answer = orjson.loads(b"".join([piece async for piece in _body_chunks(response)]))
            known = response.status < 400 or isinstance(answer["error"]["message"], str)
        except (ValueError, LookupError, TypeError):
            known = False
            answer = {}
        if known and isinstance(answer, dict):
            return cast("dict[str, Any]", answer)
        server = f"the server at {self._url} (status {response.status})"
        raise Broken("HTTP_ERROR", f"{server} is no Toolcrib gateway; correct the address")


async def _body_chunks(response: Response) -> AsyncGenerator[bytes]:
    """Yield the chunks of a body; raises TimeoutError if it stalls."""
    while True:
        with anyio.fail_after(MAX_SILENCE_SECONDS):
            piece = await response.read()
        if not piece:
            return
        yield piece


async def read_events(response: Response) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
    """Yield the Server-Sent Events of the gateway: a line with the name, one with the data, an empty one."""
    name = "message"
    async with aclosing(_lines(response)) as lines:
        async for line in lines:
            field, _, value = line.partition(b": ")
            if field == b"event":
                name = value.decode()
            elif field == b"data":
                yield name, orjson.loads(value)


async def _lines(response: Response) -> AsyncGenerator[bytes]:
    """Split the body at line ends."""
    parts: list[bytes] = []
    async with aclosing(_body_chunks(response)) as pieces:
        async for piece in pieces:
            *ended, rest = piece.split(b"\n")
            for line in ended:
                yield b"".join((*parts, line)).rstrip(b"\r")
                parts.clear()
            parts.append(rest)


def _without_none(fields: JsonObject) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def refused_error(error: JsonObject) -> Refused:
    """Return the exception for an error of the gateway."""
    code = error.get("code")
    known = code if isinstance(code, str) and code in CODES else "EXECUTION_ERROR"
    advice = f" (the key in ${KEY_VARIABLE})" if code == "UNAUTHENTICATED" else ""
    details = error.get("details")
    more: JsonObject = cast("JsonObject", details) if isinstance(details, dict) else {}
    return Refused(known, str(error["message"]) + advice, path=error.get("path"), details=more)
