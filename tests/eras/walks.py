"""What a client does through the gateway, whichever eras it and the server are of: the rows of the table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
import mcp.types as t
import pytest
from mcp import Client, MCPError
from mcp.shared.subscriptions import ToolsListChanged

from tests.eras.era_gateway import PATIENCE, REVISIONS, Era, User
from tests.eras.server import BLOCKS, FAULT, LIST, PROMPT, WHO
from tests.waiting import until


@dataclass(frozen=True)
class Cell:
    """A client of one era that uses a server of the same or the other era."""

    client: Client
    user: User
    eras: tuple[Era, Era]
    """The client's and the server's."""
    folder: Path

    def tool(self, name: str) -> str:
        return f"mcp_{self.eras[1]}_{name}"

    async def call(self, name: str, text: str = "", **more: Any) -> t.CallToolResult:
        return await self.client.call_tool(self.tool(name), {"text": text}, **more)

    async def listed(self, name: str = "echo") -> bool:
        """Whether the client finds a tool of the server in its list."""
        return self.tool(name) in {tool.name for tool in (await self.client.list_tools()).tools}

    async def noted(self, what: str) -> None:
        """Wait until the server has noted something."""
        await until((self.folder / what).exists)


def text_of(answer: t.CallToolResult) -> str:
    assert not answer.is_error, answer
    assert isinstance(answer.content[0], t.TextContent)
    return answer.content[0].text


async def call(cell: Cell) -> None:
    """Both sides speak the revision of their own era."""
    answer = await cell.call("echo", "a saw")
    client, server = (REVISIONS[era] for era in cell.eras)
    assert text_of(answer) == "a saw"
    assert answer.structured_content == {"text": "a saw", "revision": server}
    assert cell.client.protocol_version == client


async def progress(cell: Cell) -> None:
    """Every step is reported, as the server sent it, before the answer."""
    heard: list[Any] = []

    async def hear(*step: Any) -> None:
        heard.append(step)

    answer = await cell.call("steps", progress_callback=hear)
    assert heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
    assert text_of(answer) == "done"


async def cancel(cell: Cell) -> None:
    """A client that takes its call back ends it at the server, and goes on."""
    tag = token_hex(8)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cell.call, "linger", tag)
        await cell.noted(f"{tag} began")
        tasks.cancel_scope.cancel()
    await cell.noted(f"{tag} ended")
    assert text_of(await cell.call("echo", "still here")) == "still here"


async def elicit(cell: Cell) -> None:
    """The question and the answer arrive unchanged, once or twice in a call."""
    answer = await cell.call("elicit", "Who is there?")
    assert text_of(answer) == "Hello, Ada."
    [asked] = cell.user.asked
    assert (asked.message, asked.requested_schema) == ("Who is there?", WHO)
    cell.user.asked.clear()
    assert text_of(await cell.call("introduce")) == "Ada and Grace"
    assert [each.message for each in cell.user.asked] == ["Who are you?", "Who else?"]
    cell.user.asked.clear()


async def sample(cell: Cell) -> None:
    """The server samples the client's model."""
    answer = await cell.call("sample")
    assert text_of(answer) == "a person: A hammer."
    [asked] = cell.user.asked
    assert asked.max_tokens == 50
    assert [message.content.text for message in asked.messages] == [PROMPT]
    cell.user.asked.clear()


async def list_change(cell: Cell) -> None:
    """A listening client is notified of a new tool, finds it in the list, and can call it."""
    name = f"more_{token_hex(4)}"
    with anyio.fail_after(PATIENCE):
        if cell.eras[0] == "modern":
            async with cell.client.listen(tools_list_changed=True) as changes:
                await cell.call("grow", name)
                assert isinstance(await anext(aiter(changes)), ToolsListChanged)
        else:
            # This client opens its stream asynchronously, so the first notification may be lost.
            for turn in count():
                await cell.call("grow", f"{name}_{turn}" if turn else name)
                with anyio.move_on_after(1):
                    await cell.user.told.wait()
                    break
    assert await cell.listed(name)
    assert text_of(await cell.call(name, "new")) == "new"


async def error(cell: Cell) -> None:
    """An error of the protocol keeps code, words and data; one of the tool stays a result."""
    with pytest.raises(MCPError) as caught:
        await cell.call("fail")
    code, message, data = FAULT
    assert (caught.value.code, caught.value.message) == (code, message)
    assert {key: caught.value.data[key] for key in data} == data
    answer = await cell.call("refuse")
    assert answer.is_error
    assert answer.content == [t.TextContent(text="not on a Sunday")]


async def image(cell: Cell) -> None:
    """Every kind of content arrives unchanged; structure that is no object, where the client knows such."""
    answer = await cell.call("show")
    assert answer.content == BLOCKS
    client, server = cell.eras
    shown: Any = LIST if server == "modern" else {"list": LIST}
    assert answer.structured_content == (None if (client, server) == ("legacy", "modern") else shown)


Walk = Callable[[Cell], Awaitable[None]]

WALKS: dict[str, Walk] = {
    "call": call,
    "progress": progress,
    "cancel": cancel,
    "elicit": elicit,
    "sample": sample,
    "list change": list_change,
    "error": error,
    "image": image,
}
