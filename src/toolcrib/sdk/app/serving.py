"""Runs an app on uvicorn: until a signal comes, or for as long as a block lasts."""

import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import uvicorn

_LAST_SECONDS = 5
_BACKLOG = 128


class _Server(uvicorn.Server):
    """uvicorn, which leaves signals to whoever runs it and says when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self.answers.set()


def run(app: Any, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""
    uvicorn.Server(uvicorn.Config(app, host=host, port=port, **_OPTIONS)).run()


@asynccontextmanager
async def serving(app: Any, host: str, port: int) -> AsyncGenerator[str]:
    """Serve while the block lasts; gives the address, also where the port is 0 and any free one is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    server = _Server(uvicorn.Config(app, log_config=None, **_OPTIONS))

    raised: Exception | None = None

    async def serve() -> None:
        # Never cancelled: told to end, it ends what it has begun, and lets go of every session.
        with anyio.CancelScope(shield=True):
            await server.serve([listening])
        server.answers.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            await server.answers.wait()
            yield _address(listening)
        except Exception as error:  # noqa: BLE001 - raised again below, where no task group wraps it
            raised = error
        finally:
            server.should_exit = True
    if raised is not None:
        raise raised


_OPTIONS: dict[str, Any] = {
    "interface": "asgi3",
    "lifespan": "on",
    "ws": "none",
    "access_log": False,
    "server_header": False,
    "proxy_headers": False,
    "timeout_graceful_shutdown": _LAST_SECONDS,
}


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
