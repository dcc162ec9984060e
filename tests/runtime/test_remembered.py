"""What a server offered last is shown while it starts, and what it offered once is not."""

from toolcrib.interfaces import StoredDefinition
from toolcrib.runtime.sources import remembered
from toolcrib.sources.mcp.connection import McpSettings
from toolcrib.sources.mcp.source import McpSource
from toolcrib.sources.mcp.stdio_transport import StdioTransport

FILES = McpSource(McpSettings(id="files"), StdioTransport(command=("true",)).dial)


def kept(name: str, *, gone: bool = False) -> StoredDefinition:
    definition = {} if gone else {"name": name.partition(":")[2]}
    return StoredDefinition(name=name, definition=definition, seal="a", trusted="a", seen=1.0)


def test_only_the_last_offer_is_remembered() -> None:
    known = (kept("files:read"), kept("files:write", gone=True), kept("other:ask"))
    offered = remembered(FILES, known)
    assert offered is not None
    assert [tool.name for tool in offered.tools] == ["files:read"]
    assert offered.withheld == []


def test_a_server_that_offered_nothing_last_has_nothing_to_show() -> None:
    assert remembered(FILES, (kept("files:write", gone=True), kept("other:ask"))) is None
