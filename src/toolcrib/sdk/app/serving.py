"""Runs an app on uvicorn: until a signal arrives, or during a block."""

import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import uvicorn

_SHUTDOWN_SECONDS = 5
_BACKLOG = 128


class _Server(uvicorn.Server):
    """uvicorn without signal handlers, with an event that is set once it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_listening = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install no signal handlers."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then set the event."""
        await super().startup(sockets)
        self.is_listening.set()


def run(app: Any, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""
    uvicorn.Server(uvicorn.Config(app, host=host, port=port, **_OPTIONS)).run()


@asynccontextmanager
async def serving(app: Any, host: str, port: int) -> AsyncGenerator[str]:
    """Serve during the block; yields the address. Port 0 selects a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    server = _Server(uvicorn.Config(app, log_config=None, **_OPTIONS))

    raised: Exception | None = None

    async def serve() -> None:
        # Shielded: uvicorn is stopped by `should_exit`, completes its requests and closes every session.
        with anyio.CancelScope(shield=True):
            await server.serve([listening])
        server.is_listening.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            await server.is_listening.wait()
            yield _address(listening)
        except Exception as error:  # noqa: BLE001 - raised again below, outside the task group
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
    "timeout_graceful_shutdown": _SHUTDOWN_SECONDS,
}


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
