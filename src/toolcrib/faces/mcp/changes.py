"""Tells clients that their list of tools has changed, and only then: by session or by subscription."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    INTERNAL_ERROR,
    NotificationParams,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    ToolListChangedNotification,
)

from toolcrib.faces.mcp.era import Request
from toolcrib.gateway import Gateway
from toolcrib.model import Caller, Tool

MOST_LISTENERS = 1024


class Changes:
    """Hears of every new catalog and passes it on to the clients whose list it changes."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._changed = anyio.Event()
        self._told: set[str] = set()
        self._listeners = 0
        gateway.listen(self._hear)

    async def tell(self, request: Request, caller: Caller) -> None:
        """Stay with a session of the handshake era and notify it; the end of the session cancels this."""
        session = "" if request.request is None else request.request.headers.get("mcp-session-id", "")
        if session in self._told:
            return
        self._told.add(session)
        watch = _Watch(self, self._gateway, caller)
        try:
            while True:
                await watch.change()
                await request.session.send_tool_list_changed()
        finally:
            self._told.discard(session)

    async def listen(
        self, request: Request, params: SubscriptionsListenRequestParams, caller: Caller
    ) -> SubscriptionsListenResult:
        """Serve `subscriptions/listen`: the answer is a stream that lasts until the client leaves."""
        if self._listeners >= MOST_LISTENERS:
            message = "too many clients are listening; ask for the list now and then instead"
            raise MCPError(INTERNAL_ERROR, message)
        self._listeners += 1
        watch = _Watch(self, self._gateway, caller)
        try:
            wanted = params.notifications.tools_list_changed is True
            await _acknowledge(request, tools=wanted)
            while True:
                await (watch.change() if wanted else anyio.sleep_forever())
                notice = ToolListChangedNotification(params=NotificationParams(_meta=_tag(request)))
                await request.session.send_notification(notice, related_request_id=request.request_id)
        finally:
            self._listeners -= 1

    async def wait(self) -> None:
        """Return with the next catalog."""
        await self._changed.wait()

    def _hear(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class _Watch:
    """Watches the list of one caller from now on."""

    def __init__(self, changes: Changes, gateway: Gateway, caller: Caller) -> None:
        self._changes, self._gateway, self._caller = changes, gateway, caller
        self._seen, self._mark = gateway.version, self._marked()

    async def change(self) -> None:
        """Return once the list has changed; several changes in quick succession are one."""
        before = self._mark
        while self._mark == before:
            if self._gateway.version == self._seen:
                await self._changes.wait()
            self._seen, self._mark = self._gateway.version, self._marked()

    def _marked(self) -> bytes:
        return self._gateway.prepared(self._caller, "mcp-mark", _mark)


def _mark(tools: Sequence[Tool]) -> bytes:
    """Tell one list from another."""
    digest = blake2b(digest_size=16)
    for tool in tools:
        digest.update(f"{tool.exposed}\0{tool.fingerprint}\0".encode())
    return digest.digest()


async def _acknowledge(request: Request, *, tools: bool) -> None:
    """Say what will be told: nothing changes here but tools."""
    honoured = SubscriptionFilter(tools_list_changed=True if tools else None)
    params = SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=_tag(request))
    notice = SubscriptionsAcknowledgedNotification(params=params)
    await request.session.send_notification(notice, related_request_id=request.request_id)


def _tag(request: Request) -> dict[str, Any]:
    return {SUBSCRIPTION_ID_META_KEY: request.request_id}
