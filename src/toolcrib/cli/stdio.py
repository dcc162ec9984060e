"""`toolcrib stdio`: serves MCP over standard input and output, as a subprocess of the client."""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from signal import SIGINT, SIGTERM
from typing import TYPE_CHECKING

import click

from toolcrib.cli.backend import config_option, demo_option
from toolcrib.model import Caller

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from toolcrib.config import Document

_FIRST_LIST_SECONDS = 5.0
"""Time that the first tool list waits for starting servers; later tools are announced as list changes."""

STDIO_CALLER = Caller(id="local", key="local", permissions=frozenset({"*"}))


@click.command("stdio")
@config_option
@click.option("--context", metavar="NAME", help="Serve the tools of this context.")
@demo_option
def command(*, config: str | None, context: str | None, demo: bool) -> int:
    """Serve the tools as an MCP server over standard input and output.

    The client that starts it has all permissions in the context. The log is written to standard error.
    """
    import anyio

    from toolcrib.cli.local_backend import read_document

    run = partial(_run, read_document(config), context=context, demo=demo)
    anyio.run(run, backend_options={"use_uvloop": True})
    return 0


async def _run(document: "Document", *, context: str | None, demo: bool) -> None:
    import anyio

    from toolcrib.cli.running_gateway import running_gateway
    from toolcrib.frontends.mcp.stdio import serve_stdio

    async with anyio.create_task_group() as tasks:
        async with running_gateway(document, demo=demo) as runtime:
            caller = runtime.gateway.enter(STDIO_CALLER, context)
            stopped = await _serve_until_stopped(
                partial(
                    serve_stdio,
                    runtime.gateway,
                    caller,
                    partial(runtime.settled, _FIRST_LIST_SECONDS),
                ),
                tasks,
            )
        if stopped:
            # A thread is still blocked reading standard input, which only the client could unblock.
            os._exit(0)


async def _serve_until_stopped(serve_stdio: Callable[[], Awaitable[None]], tasks: "TaskGroup") -> bool:
    """Serve until the client disconnects or a signal arrives; return whether it was a signal."""
    import anyio

    ended, stopped = anyio.Event(), anyio.Event()

    async def serve() -> None:
        await serve_stdio()
        ended.set()

    async def handle_signals() -> None:
        with anyio.open_signal_receiver(SIGINT, SIGTERM) as signals:
            async for _ in signals:
                stopped.set()
                ended.set()

    async with anyio.create_task_group() as signal_tasks:
        signal_tasks.start_soon(handle_signals)
        tasks.start_soon(serve)
        await ended.wait()
        signal_tasks.cancel_scope.cancel()
    return stopped.is_set()
