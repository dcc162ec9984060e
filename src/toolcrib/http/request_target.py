"""Parses the target of a request line: path, query, and the authority if it is in absolute form."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

import httptools

from toolcrib.http.framing import MalformedRequest
from toolcrib.http.hosts import split_host

MAX_CACHED_TARGET_BYTES = 256
DEFAULT_PORTS = {b"http": "80", b"https": "443"}


class RequestTarget(NamedTuple):
    """The parts of a request target. `scheme` and `authority` are empty in origin form, such as `/health`."""

    path: str
    raw_path: bytes
    query: bytes
    scheme: bytes = b""
    authority: bytes = b""


def parse_target(url: bytes) -> RequestTarget:
    """Return the parts of a target in origin form or absolute form; refuse any other."""
    return _cached(url) if len(url) <= MAX_CACHED_TARGET_BYTES else _parsed(url)


def check_authority(target: RequestTarget, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a target in absolute form that names another host than the Host header."""
    hosts = [value for name, value in headers if name == b"host"]
    port = DEFAULT_PORTS[target.scheme]
    named = _host(target.authority, port)
    if named is None or len(hosts) != 1 or _host(hosts[0].strip(), port) != named:
        raise MalformedRequest(
            "the host in the request line and the Host header differ; send the same in both"
        )


def _parsed(url: bytes) -> RequestTarget:
    parsed = httptools.parse_url(url)
    if b"#" in url:
        raise MalformedRequest("a request line cannot hold a fragment; leave out the part after #")
    raw = parsed.path or b"/"
    path = raw.decode("ascii")
    found = RequestTarget(unquote(path) if "%" in path else path, raw, parsed.query or b"")
    if url[:1] == b"/":
        return found
    scheme = (parsed.schema or b"").lower()
    if scheme not in DEFAULT_PORTS or parsed.userinfo:
        raise MalformedRequest("the request line must name a path, such as /health")
    authority = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    return found._replace(scheme=scheme, authority=authority)


_cached = lru_cache(maxsize=1024)(_parsed)


def _host(value: bytes, default_port: str) -> tuple[str, str] | None:
    found = split_host(value.decode("latin-1"))
    return None if found is None else (found[0], (found[1] or default_port).lstrip("0"))
