"""A minimal HTTP layer on bare ASGI for all frontends: a framework costs as much as a whole call."""

from toolcrib.http.call_origin import CallOrigins, patience
from toolcrib.http.client_address import ClientAddresses
from toolcrib.http.hosts import AllowedHosts
from toolcrib.http.json_body import read
from toolcrib.http.request import Disconnected, Receive, Request, Scope, Send
from toolcrib.http.request_guard import RequestGuard
from toolcrib.http.response import HttpResponse, Write, event, json_response, send_response, sent_whole
from toolcrib.http.result_response import result_response
from toolcrib.http.router import Access, Handler, Route, Router

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
    "event",
    "json_response",
    "patience",
    "read",
    "result_response",
    "send_response",
    "sent_whole",
]
