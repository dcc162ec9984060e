"""How many modules of the gateway a warm MCP request passes: the path of a call stays readable."""

import os
import sys
from types import CodeType, FrameType
from typing import Any, Self

import anyio
import httpx2
import pytest

import toolcrib
from tests.frontends.mcp.messages import ENVELOPE, modern_headers
from tests.gateways import ADMIN, listening, open_gateway
from tests.servers.settings import PYTHON, config, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MAX_CALL_MODULES = 64
MAX_LIST_MODULES = 24
WARM_UP = 3
MEASURED = 5
"""Requests that are measured: what only some of them pass is work in the background."""

_PACKAGE = os.path.dirname(toolcrib.__file__)  # noqa: PTH120 - compared with the file names of code objects


class PassedModules:
    """Collects the code objects of the package that run while a request is on its way."""

    def __init__(self) -> None:
        self._codes: set[CodeType] = set()

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            self._codes.add(frame.f_code)

    def names(self) -> set[str]:
        """Return the modules, relative to the package."""
        return {os.path.relpath(code.co_filename, _PACKAGE) for code in self._codes}


async def passed(
    client: httpx2.AsyncClient, method: str, params: dict[str, Any], *named: str
) -> tuple[list[str], Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": ENVELOPE}}
    headers = modern_headers(method, *named)
    for _ in range(WARM_UP):
        assert "result" in (await client.post("/mcp", json=body, headers=headers)).json()
    names: set[str] | None = None
    result: Any = None
    for _ in range(MEASURED):
        with PassedModules() as modules:
            reply = await client.post("/mcp", json=body, headers=headers)
            # What runs after the response, such as the record of the call, is part of its path.
            await anyio.sleep(0.02)
        result = reply.json()["result"]
        assert not result.get("isError"), reply.text
        names = modules.names() if names is None else names & modules.names()
    return sorted(names or ()), result


async def test_warm_requests_pass_a_bounded_number_of_modules() -> None:
    server = stdio(*PYTHON, "tests.servers.echo")
    async with open_gateway(config({"up": server})) as gateway:
        assert await gateway.runtime.settled(20)
        auth = {"Authorization": f"Bearer {ADMIN}"}
        async with (
            listening(gateway.server) as url,
            httpx2.AsyncClient(base_url=url, headers=auth) as client,
        ):
            listed, found = await passed(client, "tools/list", {})
            (name,) = [tool["name"] for tool in found["tools"] if tool["name"].endswith("echo")]
            arguments = {"name": name, "arguments": {"text": "hello"}}
            called, _ = await passed(client, "tools/call", arguments, name)
    print(len(listed), *listed, sep="\n  ")
    print(len(called), *called, sep="\n  ")
    assert len(called) <= MAX_CALL_MODULES, called
    assert len(listed) <= MAX_LIST_MODULES, listed
