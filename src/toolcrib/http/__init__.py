"""A minimal HTTP layer on bare ASGI for all frontends: a framework costs as much as a whole call."""

from toolcrib.http.client_address import AllowedHosts, ClientAddresses
from toolcrib.http.request import (
    CallOrigins,
    Disconnected,
    Receive,
    Request,
    Scope,
    Send,
    call_timeout,
    parse_json,
)
from toolcrib.http.response import (
    HttpResponse,
    Write,
    json_response,
    result_response,
    send_response,
    sent_whole,
    sse_event,
)
from toolcrib.http.router import Access, Handler, RequestGuard, Route, Router

__all__ = [
    "Access",
    "AllowedHosts",
    "CallOrigins",
    "ClientAddresses",
    "Disconnected",
    "Handler",
    "HttpResponse",
    "Receive",
    "Request",
    "RequestGuard",
    "Route",
    "Router",
    "Scope",
    "Send",
    "Write",
    "call_timeout",
    "json_response",
    "parse_json",
    "result_response",
    "send_response",
    "sent_whole",
    "sse_event",
]
