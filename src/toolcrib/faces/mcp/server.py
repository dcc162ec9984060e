"""The gateway as one MCP server: lists, calls and notifies, whatever the transport and the era."""

import logging
from collections.abc import Mapping
from typing import Any, cast

from mcp import MCPError
from mcp.server import CacheHint, NotificationOptions, Server
from mcp.server.context import CallNext, HandlerResult
from mcp.server.models import InitializationOptions
from mcp_types import (
    CLIENT_INFO_META_KEY,
    INTERNAL_ERROR,
    SERVER_INFO_META_KEY,
    CallToolRequestParams,
    NotificationParams,
    PaginatedRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from pydantic import ValidationError

from toolcrib.errors import ToolcribError
from toolcrib.faces.mcp.calling import Calling
from toolcrib.faces.mcp.changes import Changes
from toolcrib.faces.mcp.era import Request, WhoAsks, is_modern
from toolcrib.faces.mcp.listing import Listing
from toolcrib.faces.mcp.origin import meta_of, origin_of
from toolcrib.gateway import Gateway
from toolcrib.version import VERSION

log = logging.getLogger(__name__)

INSTRUCTIONS = (
    "Toolcrib puts the tools of many sources behind one list. In `_meta` every result carries hints for the "
    "next step (`toolcrib/agentHints`) and a sentence that can be spoken (`toolcrib/message`). A failed call "
    "says in `toolcrib/error` what is wrong and whether trying again helps."
)
_DISCOVERY = CacheHint(ttl_ms=3_600_000, scope="public")
"""What `server/discover` says is the same for everyone until another version is installed."""


class ToolServer(Server[Any]):
    """Tools and nothing else: what it does not offer it does not announce."""

    def __init__(self, gateway: Gateway, who: WhoAsks) -> None:
        super().__init__(
            "toolcrib",
            version=VERSION,
            title="Toolcrib",
            instructions=INSTRUCTIONS,
            on_list_tools=cast("Any", self._list),
            on_call_tool=cast("Any", self._call),
            on_subscriptions_listen=self._listen,
            cache_hints={"server/discover": _DISCOVERY},
            # Arguments in headers are checked in `calling`, where the caller is known.
            get_tool_input_schema=lambda _name: None,
        )
        self.add_notification_handler("notifications/initialized", NotificationParams, self._initialized)
        stamp = self.server_info_stamp
        self._who = who
        self.calling = Calling(gateway, stamp)
        self.listing = Listing(gateway, {SERVER_INFO_META_KEY: stamp})
        self._changes = Changes(gateway)
        # In place of the SDK's own, which makes spans: the pipeline records every call, with its trace.
        self.middleware[:] = [self._answer]

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Announce that the list may change; the HTTP transport asks for the options without saying so."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    async def _answer(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        """Answer what is well formed by ourselves, leave the rest to the SDK, and let nothing raw out.

        The SDK would check each request and answer twice; ours are right by construction, or checked once.
        """
        try:
            if ctx.method == "tools/call" and _is_ready(ctx) and _is_call(ctx.params):
                return await self._call(ctx)
            if ctx.method == "tools/list" and _is_ready(ctx) and _is_list(ctx.params):
                return await self._list(ctx)
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except ToolcribError as error:
            raise self.calling.refuse(error.problem, origin_of(ctx)) from None
        except Exception:  # the boundary to the wire, which in the handshake era carries an exception's text
            log.exception("the MCP server failed at %s", ctx.method)
            raise MCPError(INTERNAL_ERROR, "the gateway failed; the operator has the details") from None

    async def _call(self, request: Request, _params: CallToolRequestParams | None = None) -> dict[str, Any]:
        return await self.calling.answer(request, request.params or {}, self._who(request))

    async def _list(self, request: Request, _params: PaginatedRequestParams | None = None) -> dict[str, Any]:
        cursor = (request.params or {}).get("cursor")
        return dict(self.listing.page(self._who(request), cursor, modern=is_modern(request)).answer)

    async def _listen(
        self, request: Request, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        return await self._changes.listen(request, params, self._who(request))

    async def _initialized(self, request: Request, _params: NotificationParams) -> None:
        await self._changes.tell(request, self._who(request))


def _is_ready(request: Request) -> bool:
    """Whether it is a request whose client has said what it must, in the handshake or in the envelope."""
    session = request.session
    if request.request_id is None or session.client_capabilities is None:
        return False
    return session.client_params is not None or CLIENT_INFO_META_KEY not in meta_of(request)


def _is_call(params: Mapping[str, Any] | None) -> bool:
    if params is None or not isinstance(params.get("name"), str):
        return False
    arguments = params.get("arguments")
    return arguments is None or isinstance(arguments, dict)


def _is_list(params: Mapping[str, Any] | None) -> bool:
    return params is None or isinstance(params.get("cursor"), str | None)
