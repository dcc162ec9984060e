"""Liveness, readiness and metrics."""

import logging
from collections.abc import Callable

from toolcrib.admin import Admin
from toolcrib.errors import Refused, ToolcribError, Unavailable
from toolcrib.http import HttpResponse, Request, json_response
from toolcrib.http.response import SAFE

log = logging.getLogger(__name__)

_PROMETHEUS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class HealthRoutes:
    """Handlers for orchestrators and Prometheus. Unauthenticated routes do not reveal what runs here."""

    def __init__(
        self, console: Admin, draining: Callable[[], bool], short_of_memory: Callable[[], None]
    ) -> None:
        self._console, self._draining, self._short_of_memory = console, draining, short_of_memory

    async def health(self, request: Request) -> HttpResponse:
        """Liveness: respond if the event loop runs."""
        del request
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> HttpResponse:
        """Readiness: refuse while draining, short of memory, or if the database fails."""
        del request
        if self._draining():
            raise Refused("OVERLOADED", "the gateway is stopping; send calls elsewhere", retry_after=5.0)
        self._short_of_memory()
        try:
            await self._console.ready()
        except ToolcribError:
            raise
        except Exception as error:  # boundary: each database driver has exceptions of its own
            log.warning("the gateway is not ready", exc_info=error)
            raise Unavailable("SOURCE_DOWN", "the database does not answer", retry_after=5.0) from error
        return json_response({"ready": True})

    async def metrics(self, request: Request) -> HttpResponse:
        """Return the metrics in Prometheus text format."""
        del request
        return HttpResponse(200, self._console.metrics(), (_PROMETHEUS, *SAFE))
