"""An app on our own SDK as a process, which can be killed: `python -m tests.servers.notes_app`."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from subprocess import DEVNULL
from time import time
from typing import Any

import anyio
import httpx2
from anyio.abc import Process

from toolcrib.sdk import AppContext, AppServer, AppSession, create_tool

PACKAGE = "com.example.jotter"


def make(key: str, *, off: float = 0.0, begins: float = 0.0) -> AppServer:
    """Create the app; its clock is `off` by some seconds, and a session takes `delay` to start."""
    app = AppServer(package=PACKAGE, api_key=key, clock=lambda: time() + off)

    async def jot(arguments: dict[str, Any], context: AppContext) -> dict[str, Any]:
        done = {"pid": os.getpid(), "activated": context.activated_for_tool, "session": bool(context.session)}
        if "page" in arguments:
            await anyio.Path(arguments["page"]).touch()
        steps = int(arguments.get("steps", 0))
        for step in range(steps):
            await context.report(step + 1, steps, f"step {step + 1}")
        await anyio.sleep(float(arguments.get("seconds", 0)))
        return done

    number = {"type": "number", "description": "how long to take, in seconds"}
    page = {"type": "string", "description": "a file to make once it has begun"}
    count = {"type": "integer", "description": "how often to say how far it is"}
    app.register_tool(
        create_tool(
            name="jot",
            description="Jots something down, in its own time.",
            parameters={"seconds": number, "steps": count, "page": page},
            handler=jot,
        )
    )

    @app.on_session
    async def begin(session: AppSession) -> None:
        await anyio.sleep(begins)
        await session.layouts.show_text_wall("here")

    return app


class NotesApp:
    """The running app."""

    def __init__(self, process: Process, url: str) -> None:
        self.process, self.url = process, url

    async def sessions(self) -> int:
        """Return how many sessions it has; -1 where it does not answer."""
        try:
            async with httpx2.AsyncClient() as http:
                return (await http.get(f"{self.url}/health")).json()["activeSessions"]
        except httpx2.TransportError:
            return -1

    async def kill(self) -> None:
        """End it without a word."""
        os.kill(self.process.pid, signal.SIGKILL)
        await self.process.wait()

    async def leave(self) -> None:
        """Terminate it and wait."""
        self.process.terminate()
        with anyio.fail_after(20):
            await self.process.wait()


@asynccontextmanager
async def notes_app(key: str, port: int, **settings: float) -> AsyncGenerator[NotesApp]:
    """Run the app on a port until the block ends."""
    words = [sys.executable, "-m", "tests.servers.notes_app", str(port)]
    words += [f"{name}={value}" for name, value in settings.items()]
    environment = {**os.environ, "APP_KEY": key}
    process = await anyio.open_process(words, stdin=DEVNULL, stdout=DEVNULL, stderr=None, env=environment)
    app = NotesApp(process, f"http://127.0.0.1:{port}")
    try:
        with anyio.fail_after(60):
            while await app.sessions() < 0:
                assert process.returncode is None
                await anyio.sleep(0.02)
        yield app
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


if __name__ == "__main__":
    given = {name: float(value) for name, _, value in (word.partition("=") for word in sys.argv[2:])}
    make(os.environ["APP_KEY"], **given).run(port=int(sys.argv[1]))
