"""Requests made by hand, for the parts that look at one."""

from tests.gateways import HOST, AsgiConnection, scope
from toolcrib.http import Request


def request(
    method: str = "GET",
    target: str = "/",
    headers: dict[str, str] | None = None,
    *,
    pairs: list[tuple[bytes, bytes]] | None = None,
    sender: AsgiConnection | None = None,
    client: str | None = "127.0.0.1",
) -> Request:
    """Make a request; `pairs` are its headers as they are, `headers` come beside a Host."""
    path, _, query = target.partition("?")
    given = {"host": HOST, **(headers or {})}
    raw = (
        [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
        if pairs is None
        else pairs
    )
    sender = sender or AsgiConnection()
    return Request(scope(method, path, raw, query=query.encode(), client=client), sender.receive, sender.send)
