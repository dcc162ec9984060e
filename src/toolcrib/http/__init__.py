"""The little of HTTP that every face needs, on bare ASGI: a framework costs as much as a whole call."""

from toolcrib.http.call_origin import Origins, patience
from toolcrib.http.client_address import Clients
from toolcrib.http.hosts import Hosts
from toolcrib.http.json_body import read
from toolcrib.http.request import Disconnected, Receive, Request, Scope, Send
from toolcrib.http.request_guard import Guard
from toolcrib.http.response import Answer, Write, event, json_answer, send_answer, sent_whole
from toolcrib.http.result_response import result_answer
from toolcrib.http.router import Access, Handler, Route, Router

__all__ = [
    "Access",
    "Answer",
    "Clients",
    "Disconnected",
    "Guard",
    "Handler",
    "Hosts",
    "Origins",
    "Receive",
    "Request",
    "Route",
    "Router",
    "Scope",
    "Send",
    "Write",
    "event",
    "json_answer",
    "patience",
    "read",
    "result_answer",
    "send_answer",
    "sent_whole",
]
