"""The sections of the config become runtime values."""

import pytest

from toolcrib.config import default_document, parse, with_bind_address
from toolcrib.config.mcp import Defaults, McpServer, McpTool
from toolcrib.model import Slow
from toolcrib.runtime.convert import rules_of, settings_of


def test_relay_settings_follow_the_config() -> None:
    usual = settings_of("s", McpServer(transport="stdio"), str)
    assert (usual.relays, usual.max_owner_connections) == ({"elicitation", "sampling"}, 8)
    said = settings_of("s", McpServer(transport="http", relay=("roots",), max_connections=3), str)
    assert (said.relays, said.max_owner_connections) == ({"roots"}, 3)
    web = settings_of("s", McpServer(transport="http", relay=()), str)
    assert (web.relays, web.max_owner_connections, web.owner_idle_timeout) == (frozenset(), 32, 24.0)


@pytest.mark.requirement("G2")
def test_slow_message_prefers_tool_over_server_default() -> None:
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


LOOPBACK = ("127.0.0.0/8", "::1/128")


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "text, named, before",
    [
        ("", (), LOOPBACK),
        ("server: {host: 0.0.0.0}", (), ()),
        ("allow_private: []", (), ()),
        ("allow_private: [10.1.2.3/8]", ("10.0.0.0/8",), ("10.0.0.0/8",)),
        ("server: {host: 0.0.0.0}\nallow_private: [10.0.0.0/8]", ("10.0.0.0/8",), ("10.0.0.0/8",)),
    ],
)
def test_only_old_addresses_depend_on_the_bind_address(
    text: str, named: tuple[str, ...], before: tuple[str, ...]
) -> None:
    rules = rules_of(parse(text, "toolcrib.yaml", {}))
    assert rules.other.allow_private == named
    assert rules.operator.allow_private == (*named, *LOOPBACK)
    assert rules.unrecorded.allow_private == before


@pytest.mark.requirement("I5")
def test_the_command_lines_address_decides_for_old_addresses() -> None:
    rules = rules_of(with_bind_address(default_document({}), host="0.0.0.0"))
    assert rules.unrecorded.allow_private == ()
