"""Two servers with the same tools, ours and one on the official SDK, and their answers."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn, cast

import anyio
import mcp.types as t
from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types.methods import validate_server_result
from pydantic import Field

from tests.frontends.mcp.corpus import INTRODUCTION, PLAIN, SESSION, Case, Pairs, message, swapped
from tests.gateways import ADMIN, HOST, open_gateway, scope
from toolcrib import BusinessRuleError, ToolContext, create_tool
from toolcrib.http import Receive, Scope, Send
from toolcrib.mcp.revisions import LEGACY

Context = ServerRequestContext[Any, Any]
Kind = Literal["json", "events", "nothing", "something else"]
PATIENCE = 60


@dataclass(frozen=True)
class Seen:
    """All of an answer that both servers should agree on."""

    status: int
    kind: Kind
    before: tuple[str, ...] = ()
    """Methods of the messages before the answer."""
    id: Literal["the same", "null", "none"] = "none"
    """Whether the answer is to the request, by its id."""
    error: int | str | None = None
    result: str | None = None
    """Which kind of result, where it is one."""
    is_error: bool | None = None
    opens: bool = False
    """Whether it begins a session."""
    allow: str | None = None


# --- ours ---


@create_tool(category="query", idempotent=True)
def say(text: str) -> str:
    """Say a text again."""
    return text


@create_tool(category="query", idempotent=True)
def hello() -> str:
    """Say hello."""
    return "hello"


@create_tool(category="query", idempotent=True)
async def walk(ctx: ToolContext) -> str:
    """Report every step."""
    for step in (1, 2, 3):
        await ctx.report(step, 3)
    return "there"


@create_tool
def refuse() -> str:
    """Do nothing, on principle."""
    raise BusinessRuleError("NEVER", "Not on a Sunday.")


@create_tool(category="query", idempotent=True)
def find(place: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Place"})] = "") -> str:
    """Look for something in a place."""
    return place


# --- theirs ---

PLACE = {"type": "object", "properties": {"place": {"type": "string", "x-mcp-header": "Place"}}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SCHEMAS: dict[str, dict[str, Any]] = {
    **{name: {"type": "object"} for name in ("hello", "walk", "refuse")},
    "say": TEXT,
    "find": PLACE,
}


async def list_tools(_ctx: Context, _params: Any) -> t.ListToolsResult:
    return t.ListToolsResult(
        tools=[t.Tool(name=name, description=name, input_schema=schema) for name, schema in SCHEMAS.items()]
    )


async def call_tool(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
    if params.name not in SCHEMAS:
        raise MCPError(t.INVALID_PARAMS, "there is no such tool")
    if params.name == "walk":
        for step in (1, 2, 3):
            await ctx.session.report_progress(step, 3)
    return t.CallToolResult(content=[t.TextContent(text="hi")], is_error=params.name == "refuse")


async def no_resources(_ctx: Context, _params: Any) -> t.ListResourcesResult:
    return t.ListResourcesResult(resources=[])


async def no_templates(_ctx: Context, _params: Any) -> t.ListResourceTemplatesResult:
    return t.ListResourceTemplatesResult(resource_templates=[])


async def no_prompts(_ctx: Context, _params: Any) -> t.ListPromptsResult:
    return t.ListPromptsResult(prompts=[])


async def nothing_there(ctx: Context, _params: Any) -> NoReturn:
    gone = ctx.protocol_version == LEGACY and ctx.method.startswith("resources/")
    raise MCPError(-32002 if gone else t.INVALID_PARAMS, "there is no such thing")


async def taken(_ctx: Context, _params: Any) -> t.EmptyResult:
    return t.EmptyResult()


def theirs() -> StreamableHTTPSessionManager:
    server = Server[Any](
        "reference",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=no_resources,
        on_list_resource_templates=no_templates,
        on_read_resource=nothing_there,
        on_subscribe_resource=nothing_there,
        on_unsubscribe_resource=taken,
        on_list_prompts=no_prompts,
        on_get_prompt=nothing_there,
        on_completion=nothing_there,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
        get_tool_input_schema=SCHEMAS.get,
    )
    server.add_request_handler("logging/setLevel", t.SetLevelRequestParams, taken)
    return StreamableHTTPSessionManager(app=server)


# --- both ---


class Heard:
    """Takes one answer; it is complete when it ends, or when it turns out to be a stream that does not."""

    def __init__(self, body: bytes, *, endless: bool) -> None:
        self._body, self._endless = [body], endless
        self.status = 0
        self.headers: dict[str, str] = {}
        self.said = b""
        self.complete = anyio.Event()

    async def receive(self) -> dict[str, Any]:
        if self._body:
            return {"type": "http.request", "body": self._body.pop(), "more_body": False}
        await anyio.sleep_forever()
        raise AssertionError

    async def send(self, part: Any) -> None:
        if part["type"] == "http.response.start":
            self.status = int(part["status"])
            self.headers = {name.decode().lower(): value.decode() for name, value in part["headers"]}
            if self._endless and self._streams:
                self.complete.set()
            return
        self.said += part.get("body", b"")
        if not part.get("more_body", False):
            self.complete.set()

    @property
    def _streams(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def messages(self) -> list[Any]:
        if self.kind in ("nothing", "something else"):
            return []
        if self.kind == "json":
            return [json.loads(self.said)]
        lines = self.said.decode().replace("\r\n", "\n").split("\n")
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]

    @property
    def kind(self) -> Kind:
        if self._streams:
            return "events"
        if not self.said or self.said == b"null":
            return "nothing"
        return (
            "json"
            if self.headers.get("content-type", "").startswith("application/json")
            else "something else"
        )


class Peer:
    """One of the two servers."""

    def __init__(self, app: Any, extra: Pairs) -> None:
        self._app, self._extra = app, extra

    async def seen(self, case: Case) -> Seen:
        """Send a case, with a session of its own where it needs one."""
        session = await self._session(case.revision) if case.needs_session else ""
        pairs = tuple((name, session if value == SESSION else value) for name, value in case.headers)
        endless = case.verb == "GET" or (case.method == "subscriptions/listen" and not case.legacy)
        heard = await self._sent(case.verb, pairs, case.body, endless=endless)
        found = seen(case, heard)
        if found.result is not None:
            [*_, last] = heard.messages()
            for each in cast("list[Any]", last) if isinstance(last, list) else [last]:
                validate_server_result(case.method, case.revision, each["result"])
        return found

    async def _session(self, revision: str) -> str:
        opening = message("initialize", {**INTRODUCTION, "protocolVersion": revision})
        heard = await self._sent("POST", PLAIN, json.dumps(opening).encode())
        session = heard.headers["mcp-session-id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        sent = swapped(PLAIN, mcp_session_id=session)
        assert (await self._sent("POST", sent, json.dumps(ready).encode())).status == 202
        return session

    async def _sent(self, verb: str, pairs: Pairs, body: bytes, *, endless: bool = False) -> Heard:
        heard = Heard(body, endless=endless)
        size: Pairs = (("content-length", str(len(body))),) if body else ()
        headers = [(name.encode(), value.encode()) for name, value in (*self._extra, *size, *pairs)]
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._app, scope(verb, "/mcp", headers), heard.receive, heard.send)
                await heard.complete.wait()
                if endless:
                    tasks.cancel_scope.cancel()
        return heard


def seen(case: Case, heard: Heard) -> Seen:
    """What is to be compared of an answer."""
    said = heard.messages()
    answer: Any = said.pop() if said and "method" not in said[-1] else None
    if isinstance(answer, list):
        answer = cast("list[Any]", answer)[0]
    common: dict[str, Any] = {
        "status": heard.status,
        "kind": heard.kind,
        "before": tuple(each["method"] for each in said),
        "allow": heard.headers.get("allow"),
        "opens": case.method == "initialize" and "mcp-session-id" in heard.headers,
    }
    if answer is None:
        return Seen(**common)
    result: Any = answer.get("result")
    return Seen(
        **common,
        id=_id(case, answer),
        error=answer["error"]["code"] if "error" in answer else None,
        result=None if result is None else result.get("resultType", "untyped"),
        is_error=None if result is None else result.get("isError"),
    )


def _id(case: Case, answer: dict[str, Any]) -> Literal["the same", "null", "none"]:
    if answer.get("id") is None:
        return "null" if "id" in answer else "none"
    asked = json.loads(case.body)
    assert answer["id"] == (asked[0] if isinstance(asked, list) else asked)["id"]
    return "the same"


@asynccontextmanager
async def peers() -> AsyncGenerator[tuple[Peer, Peer]]:
    """Run both."""
    manager = theirs()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await manager.handle_request(scope, receive, send)

    who = (("host", HOST), ("authorization", f"Bearer {ADMIN}"))
    async with open_gateway(tools=[say, hello, walk, refuse, find]) as ours, manager.run():
        yield Peer(ours.server, who), Peer(app, (("host", HOST),))
