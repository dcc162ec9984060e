"""The config's spelling becomes the values of the house."""

from toolcrib.build.convert import settings_of
from toolcrib.config.mcp import McpServer


def test_what_a_server_may_ask_is_as_the_config_says() -> None:
    usual = settings_of("s", McpServer(transport="stdio"), str)
    assert (usual.relays, usual.most_lanes) == ({"elicitation", "sampling"}, 32)
    said = settings_of("s", McpServer(transport="http", relay=("roots",), max_connections=3), str)
    assert (said.relays, said.most_lanes) == ({"roots"}, 3)
    assert settings_of("s", McpServer(transport="http", relay=()), str).relays == frozenset()
