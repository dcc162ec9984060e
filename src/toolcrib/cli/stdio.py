"""`toolcrib stdio`: the gateway as a child of an MCP client, over standard input and output."""

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
"""How many seconds the first list waits for servers that are starting; what comes later is announced."""

STDIO_CALLER = Caller(id="local", key="local", permissions=frozenset({"*"}))


@click.command("stdio")
@config_option
@click.option("--context", metavar="NAME", help="Serve the tools of this context.")
@demo_option
def command(*, config: str | None, context: str | None, demo: bool) -> int:
    """Serve the tools as an MCP server over standard input and output.

    The client that starts it may use everything in the context. The log goes to standard error.
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
            told = await _serve_until_stopped(
                partial(
                    serve_stdio,
                    runtime.gateway,
                    runtime.conversations,
                    caller,
                    partial(runtime.settled, _FIRST_LIST_SECONDS),
                ),
                tasks,
            )
        if told:
            # A thread still waits for the client's next line, and only the client could wake it.
            os._exit(0)


async def _serve_until_stopped(serve_stdio: Callable[[], Awaitable[None]], tasks: "TaskGroup") -> bool:
    """Serve until the client leaves, or until we are told to stop; return whether we were told."""
    import anyio

    over, told = anyio.Event(), anyio.Event()

    async def serve() -> None:
        await serve_stdio()
        over.set()

    async def obey() -> None:
        with anyio.open_signal_receiver(SIGINT, SIGTERM) as signals:
            async for _ in signals:
                told.set()
                over.set()

    async with anyio.create_task_group() as watching:
        watching.start_soon(obey)
        tasks.start_soon(serve)
        await over.wait()
        watching.cancel_scope.cancel()
    return told.is_set()
