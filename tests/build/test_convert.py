"""The config's spelling becomes the values of the house."""

import pytest

from toolcrib.build.convert import settings_of
from toolcrib.config.mcp import Defaults, McpServer, McpTool
from toolcrib.model import Slow


def test_what_a_server_may_ask_is_as_the_config_says() -> None:
    usual = settings_of("s", McpServer(transport="stdio"), str)
    assert (usual.relays, usual.most_lanes) == ({"elicitation", "sampling"}, 32)
    said = settings_of("s", McpServer(transport="http", relay=("roots",), max_connections=3), str)
    assert (said.relays, said.most_lanes) == ({"roots"}, 3)
    assert settings_of("s", McpServer(transport="http", relay=()), str).relays == frozenset()


@pytest.mark.requirement("G2")
def test_when_to_say_that_it_takes_a_while_and_what_are_each_the_tools_or_else_the_servers() -> None:
    tools = (
        McpTool(name="plain"),
        McpTool(name="worded", slow_response_message="Looking."),
        McpTool(name="timed", slow_response_threshold_ms=500),
    )
    usual = Defaults(slow_response_threshold_ms=2_000, slow_response_message="Wait.")
    found = settings_of("s", McpServer(transport="stdio", tools=tools, defaults=usual), str)
    assert found.slow == found.tools["plain"].slow == Slow(threshold=2.0, message="Wait.")
    assert found.tools["worded"].slow == Slow(threshold=2.0, message="Looking.")
    assert found.tools["timed"].slow == Slow(threshold=0.5, message="Wait.")
    silent = settings_of("s", McpServer(transport="stdio", tools=tools), str)
    assert (silent.slow, silent.tools["worded"].slow) == (None, None)
    assert silent.tools["timed"].slow == Slow(threshold=0.5, message="One moment, please.")
