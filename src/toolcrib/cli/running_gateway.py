"""Runs a gateway from the command line, with its log, and prints its addresses at start."""

import json
import os
import shlex
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from toolcrib.cli import resume_collector
from toolcrib.cli.output import console, in_terminal, may_show_secrets, show_link, strip_control
from toolcrib.config import Document, home
from toolcrib.config.load import ADMIN_KEY
from toolcrib.identity.local_callers import FILE
from toolcrib.model import JsonObject
from toolcrib.observe import Redactor
from toolcrib.observe.log import setup
from toolcrib.runtime import Runtime, build
from toolcrib.version import VERSION

# --- The gateway and its log ---


@asynccontextmanager
async def running_gateway(document: Document, *, demo: bool) -> AsyncGenerator[Runtime]:
    """Build the gateway, open its log, and run it while the block runs."""
    redactor = Redactor(document.secret_texts)
    settings = document.log
    file = None if settings.file is None else Path(settings.file)
    log = setup(settings.level, file, redactor, arguments=settings.arguments)
    try:
        async with build(document, env=os.environ, demo=demo, journal_to=log, redactor=redactor) as runtime:
            resume_collector()
            yield runtime
    finally:
        log.close()


# --- Output at start: addresses, an example call, the config of an MCP client ---

LINK_COMMAND = "toolcrib link"
_DEMO_APP = "com.toolcrib.reminder"


@dataclass(frozen=True)
class Banner:
    """Printed once, on standard output. It names where the admin key is, and never contains it."""

    runtime: Runtime
    env: Mapping[str, str]
    demo: bool = False
    """Whether to print commands that try the demo apps."""

    @property
    def shows_link(self) -> bool:
        """Whether to include a sign-in link: only in a terminal."""
        return in_terminal() and may_show_secrets()

    def show(self, address: str) -> None:
        """Print it: drawn in a terminal, as plain lines in a pipe."""
        url = (self.runtime.document.server.public_url or address).rstrip("/")
        if in_terminal():
            self._draw(url)
        else:
            click.echo("\n".join(self._lines(url)))

    def facts(self, url: str) -> dict[str, str]:
        """Return the addresses, tools and key location, by label."""
        status = self.runtime.console.status()
        return {
            "Web page": f"{url}/ (run `{LINK_COMMAND}` in a terminal for a sign-in link)",
            "MCP": f"{url}/mcp",
            "REST": f"{url}/api/tools",
            "Tools": _tools_summary(status),
            "Admin key": self._key_location(),
        }

    def curl(self, url: str) -> str:
        """Return a command that calls a tool."""
        return self._executing(url, {"name": "get_datetime", "arguments": {}})

    def apps(self, url: str) -> dict[str, str]:
        """Return commands that try the demo apps, by description."""
        if not self.demo or self.runtime.console.apps.find(_DEMO_APP) is None:
            return {}
        glasses = f'TOOLCRIB_KEY="{self._key()}" toolcrib device simulate --user demo --url {url}'
        body = {"name": f"{_DEMO_APP}:add_reminder", "arguments": {"text": "Buy milk"}}
        return {
            "Simulate smart glasses, in another terminal:": glasses,
            "Then let an app display something on them:": self._executing(url, body, user="demo"),
        }

    def _executing(self, url: str, body: JsonObject, *, user: str | None = None) -> str:
        acting = "" if user is None else f"-H 'X-User-Id: {user}' "
        return (
            f'curl -s {url}/api/tools/execute -H "Authorization: Bearer {self._key()}" \\\n'
            f"  {acting}-H 'Content-Type: application/json' -d '{json.dumps(body)}'"
        )

    def client(self, url: str) -> str:
        """Return the mcp.json of an MCP client."""
        headers = {"Authorization": "Bearer ${TOOLCRIB_KEY}"}
        server = {"type": "http", "url": f"{url}/mcp", "headers": headers}
        return json.dumps({"mcpServers": {"toolcrib": server}})

    def _lines(self, url: str) -> list[str]:
        facts = [f"{name}: {value}" for name, value in self.facts(url).items()]
        warnings = [f"Warning: {strip_control(each)}" for each in self.runtime.console.status()["warnings"]]
        tail = [
            f"Try it:\n{self.curl(url)}",
            *(f"{what}\n{how}" for what, how in self.apps(url).items()),
            f"Connect a client, with a key in $TOOLCRIB_KEY:\n{self.client(url)}",
        ]
        return [f"Toolcrib {VERSION} is listening on {url}", *facts, *warnings, *tail]

    def _draw(self, url: str) -> None:
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        facts = self.facts(url)
        if may_show_secrets():
            facts.pop("Web page")
        grid = Table.grid(padding=(0, 2))
        for name, value in facts.items():
            grid.add_row(Text(name, style="bold"), Text(strip_control(value)))
        terminal = console()
        terminal.print(
            Panel(grid, title=f"Toolcrib {VERSION}", title_align="left", border_style="cyan", expand=False)
        )
        for each in self.runtime.console.status()["warnings"]:
            terminal.print(Text(f"Warning: {strip_control(each)}", style="yellow"), soft_wrap=True)
        if may_show_secrets():
            show_link(f"{url}/#token={self.runtime.identity.sign_in.make_link()}")
        commands = {"Try it:": self.curl(url), **self.apps(url)}
        commands["Connect a client, with a key in $TOOLCRIB_KEY:"] = self.client(url)
        for what, how in commands.items():
            terminal.print(Text(f"\n{what}", style="bold"))
            terminal.print(Text(how), soft_wrap=True)
        terminal.print(Text("\nPress Ctrl-C to stop.", style="dim"))

    def _key(self) -> str:
        if self.env.get(ADMIN_KEY):
            return f"${ADMIN_KEY}"
        if self.runtime.document.auth.admin_key:
            return "$TOOLCRIB_KEY"
        return f"$(cat {shlex.quote(str(self._key_file()))})"

    def _key_location(self) -> str:
        if self.env.get(ADMIN_KEY):
            return f"in ${ADMIN_KEY}"
        if self.runtime.document.auth.admin_key:
            return f"auth.admin_key of {self.runtime.document.source}"
        return f"in {self._key_file()}"

    def _key_file(self) -> Path:
        return home(self.env) / FILE


def _tools_summary(status: JsonObject) -> str:
    """Return the number of tools, their sources, and sources that are starting."""
    ready = [each["id"] for each in status["sources"] if each["tools"]]
    starting = [each["id"] for each in status["sources"] if each["state"] == "starting"]
    summary = f"{status['tools']} from {', '.join(ready)}"
    return f"{summary}; starting: {', '.join(starting)}" if starting else summary
