"""Converts a completed result into an HTTP response: status, body, and the headers that an error needs."""

from math import ceil

from toolcrib.formats.rest import encode, status
from toolcrib.http.response import JSON, Header, HttpResponse
from toolcrib.model import Problem, Result

_CHALLENGE = (b"www-authenticate", b'Bearer realm="toolcrib"')
_HANG_UP = (b"connection", b"close")


def result_response(result: Result) -> HttpResponse:
    """Return the HTTP response for a result."""
    problem = result.problem
    if problem is None:
        return HttpResponse(200, encode(result))
    code = status(result)
    return HttpResponse(code, encode(result), (*JSON, *_beside(problem, code)))


def _beside(problem: Problem, code: int) -> list[Header]:
    headers: list[Header] = []
    if code == 401:
        headers.append(_CHALLENGE)
    if code == 405:
        headers.append((b"allow", ", ".join(problem.details["allow"]).encode()))
    if code == 413:
        # The rest of the body is still being sent, and it will not be read.
        headers.append(_HANG_UP)
    return [*headers, *retry_header(problem)]


def retry_header(problem: Problem) -> tuple[Header, ...]:
    """Return the Retry-After header if the problem has a delay."""
    if problem.retry_after is None:
        return ()
    return ((b"retry-after", b"%d" % max(1, ceil(problem.retry_after))),)
