"""The MCP servers behind the gateway: how they are, one put to the test, a reload, what is approved."""

from toolcrib.admin import Admin
from toolcrib.frontends.rest.fields import choice, needed, only, text
from toolcrib.http import HttpResponse, Request, json_response

SERVERS = "crib:servers"
"""Opens every path that could start a process, and what decides which definitions are trusted."""

PIN_FIELDS = ("name", "seal")


class ServerRoutes:
    """Answers for the part of the console's door that is about servers."""

    def __init__(self, console: Admin) -> None:
        self._servers = console.servers

    async def status(self, request: Request) -> HttpResponse:
        """Say how every server is."""
        request.query()
        return json_response(self._servers.status())

    async def test(self, request: Request) -> HttpResponse:
        """Ask one server for its tools, now."""
        request.query()
        return json_response(await self._servers.test(request.params["server_id"], actor=request.actor))

    async def remove(self, request: Request) -> HttpResponse:
        """Remove a server that was added at run time."""
        request.query()
        return json_response(await self._servers.remove(request.params["server_id"], actor=request.actor))

    async def reload(self, request: Request) -> HttpResponse:
        """Bring the gateway in line with its config, or only say what that would change."""
        dry = choice(request.query("dry_run"), "dry_run", ("true", "false"), "false")
        return json_response(await self._servers.reload(dry_run=dry == "true", actor=request.actor))

    async def pins(self, request: Request) -> HttpResponse:
        """List the definitions that are not the trusted ones."""
        request.query()
        return json_response({"pins": self._servers.pins()})

    async def approve(self, request: Request) -> HttpResponse:
        """Trust a definition as it is now."""
        request.query()
        fields = only(await request.json(), *PIN_FIELDS)
        name, seal = needed(fields, "name"), text(fields, "seal")
        return json_response(await self._servers.approve(name, seal, actor=request.actor))
