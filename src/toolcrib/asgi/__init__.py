"""The little of HTTP that every face needs, on bare ASGI: a framework costs as much as a whole call."""

from toolcrib.asgi.answer import Answer, Write, event, json_answer, send_answer, sent_whole
from toolcrib.asgi.body import read
from toolcrib.asgi.clients import Clients
from toolcrib.asgi.guard import Guard
from toolcrib.asgi.hosts import Hosts
from toolcrib.asgi.origins import Origins, patience
from toolcrib.asgi.request import Disconnected, Receive, Request, Scope, Send
from toolcrib.asgi.results import result_answer
from toolcrib.asgi.router import Access, Handler, Route, Router

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
