"""ASGI echo server as the upper bound: reads a request and returns a fixed number of bytes."""

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


def echo_app(size: int) -> App:
    body = b"x" * size
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)]

    async def app(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        while (await receive()).get("more_body", False):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def main(port: str, size: str) -> None:
    uvicorn.run(
        echo_app(int(size)),
        host="127.0.0.1",
        port=int(port),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        server_header=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
