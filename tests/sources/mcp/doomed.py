"""A gateway that is going to die: starts an obedient server, says who runs, and waits for its end."""

import sys
from pathlib import Path

import anyio
import orjson

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.stdio_transport import StdioTransport


def ignore(_method: str, _params: JsonObject) -> None:
    """Nobody listens."""


async def main(mark: str) -> None:
    name, _, value = mark.partition("=")
    server = (sys.executable, "-S", str(Path(__file__).with_name("obedient.py")))
    stdio = StdioTransport(command=server, env={name: value}, patience=0.3)
    async with stdio.dial(ignore) as connection:
        family = await connection.request("family", b"{}")
        print(orjson.dumps(family).decode(), flush=True)
        await connection.request("stubborn", b'{"deaf":true}')
        print("ready", flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], backend_options={"use_uvloop": sys.argv[2] == "uvloop"})
