"""REST routes of MCP servers: status, test, removal, config reload, and approval of changed definitions."""

from toolcrib.admin import Admin
from toolcrib.frontends.rest.fields import choice, needed, only, text
from toolcrib.http import HttpResponse, Request, json_response

SERVERS = "crib:servers"
"""Permission for every route that could start a process or that decides which definitions are trusted."""

PIN_FIELDS = ("name", "seal")


class ServerRoutes:
    """Handlers of the MCP server routes."""

    def __init__(self, console: Admin) -> None:
        self._servers = console.servers

    async def status(self, request: Request) -> HttpResponse:
        """Return the status of every server."""
        request.query()
        return json_response(self._servers.status())

    async def test(self, request: Request) -> HttpResponse:
        """Fetch the tools of one server now."""
        request.query()
        return json_response(await self._servers.test(request.params["server_id"], actor=request.actor))

    async def remove(self, request: Request) -> HttpResponse:
        """Remove a server that was added at run time."""
        request.query()
        return json_response(await self._servers.remove(request.params["server_id"], actor=request.actor))

    async def reload(self, request: Request) -> HttpResponse:
        """Reload the config, or with `dry_run` only return what that would change."""
        dry = choice(request.query("dry_run"), "dry_run", ("true", "false"), "false")
        return json_response(await self._servers.reload(dry_run=dry == "true", actor=request.actor))

    async def pins(self, request: Request) -> HttpResponse:
        """List the definitions that differ from the trusted ones."""
        request.query()
        return json_response({"pins": self._servers.pins()})

    async def approve(self, request: Request) -> HttpResponse:
        """Trust the current definition of a tool."""
        request.query()
        fields = only(await request.json(), *PIN_FIELDS)
        name, seal = needed(fields, "name"), text(fields, "seal")
        return json_response(await self._servers.approve(name, seal, actor=request.actor))
