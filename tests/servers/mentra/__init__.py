"""A real Mentra app as a process: a shopping list on npm's SDK, which knows nothing of us."""

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, STDOUT
from typing import Any

import anyio
import httpx2

from tests.parts import node, require
from tests.parts.ports import free_port

PACKAGE = "org.example.shopping"
TOOLS = [
    {
        "id": "add_item",
        "description": "Puts an item on the shopping list",
        "activationPhrases": ["add to my list"],
        "parameters": {"item": {"type": "string", "description": "What to buy", "required": True}},
    },
    {"id": "fail", "description": "Fails, as an app may"},
]
"""As the app's author declared them to Mentra's console: the SDK itself knows of no definitions."""
_PATIENCE = 60


class ShoppingList:
    """The running app: its address, and what its code was told."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def seen(self) -> dict[str, Any]:
        """Return the calls, sessions and stops its handlers were given."""
        async with httpx2.AsyncClient() as http:
            return (await http.get(f"{self.url}/seen")).json()

    async def health(self) -> dict[str, Any] | None:
        """Return the health of the SDK; None without an answer."""
        try:
            async with httpx2.AsyncClient() as http:
                return (await http.get(f"{self.url}/health")).json()
        except httpx2.TransportError:
            return None


@asynccontextmanager
async def shopping_list(folder: Path, key: str, *, port: int | None = None) -> AsyncGenerator[ShoppingList]:
    """Run the app in a folder of its own until the block ends."""
    sdk = require("mentra")
    home = folder / "shopping"
    home.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).with_name("app.mjs"), home)
    modules = home / "node_modules"
    if not modules.exists():
        modules.symlink_to(sdk.parents[1])
    port = free_port() if port is None else port
    settings = {"PACKAGE": PACKAGE, "API_KEY": key, "PORT": str(port)}
    with (home / "log").open("ab") as log:
        process = await anyio.open_process(
            [str(require("node")), "app.mjs"],
            cwd=home,
            stdin=DEVNULL,
            stdout=log,
            stderr=STDOUT,
            env={**os.environ, **node.environment(), **settings},
        )
    try:
        app = ShoppingList(f"http://127.0.0.1:{port}")
        with anyio.fail_after(_PATIENCE):
            while await app.health() is None:
                assert process.returncode is None, (home / "log").read_text()
                await anyio.sleep(0.05)
        yield app
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
