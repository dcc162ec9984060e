"""Files of other MCP hosts become a config of ours."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.config import ConfigError, Document, parse
from toolcrib.config.imports import MAX_IMPORTED_SERVERS, ImportedServers, import_servers, servers_file

ADVICE = ": contains a secret in plain text; use ${NAME} to read it from the environment"


class Anything(dict[str, str]):
    """An environment that has every variable."""

    def get(self, key: str, default: Any = None) -> Any:
        del default
        return "1" if key in ("HOST", "PORT") else "https://a-value-of-1"


def found(document: object) -> ImportedServers:
    return import_servers(json.dumps(document).encode(), "mcp.json")


def loaded(result: ImportedServers) -> Document:
    return parse(servers_file(result.servers), "toolcrib.yaml", Anything())


def one(server: object, **beside: object) -> tuple[Any, list[str]]:
    """Import one server called s; return it and the warnings about it."""
    result = found({"mcpServers": {"s": server}, **beside})
    loaded(result)
    return result.servers.get("s"), [each.removeprefix("mcp.json mcpServers.s") for each in result.warnings]


CLAUDE = {
    "globalShortcut": "Ctrl+Space",
    "mcpServers": {
        "filesystem": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Documents"],
        },
        "github": {"command": "docker", "args": ["run", "-i"], "env": {"GITHUB_TOKEN": "ghp_secret"}},
    },
}


@pytest.mark.requirement("B9")
def test_a_file_of_claude_desktop() -> None:
    result = found(CLAUDE)
    assert result.servers == {
        "filesystem": {
            "transport": "stdio",
            "command": ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Documents"],
        },
        "github": {
            "transport": "stdio",
            "command": ["docker", "run", "-i"],
            "env": {"GITHUB_TOKEN": "ghp_secret"},
        },
    }
    ignored, secret = result.warnings
    assert matches("config", "other settings of a host are ignored", ignored)
    assert secret == f"mcp.servers.github.env.GITHUB_TOKEN{ADVICE}"
    assert loaded(result).mcp.servers["github"].env == {"GITHUB_TOKEN": "ghp_secret"}
    assert result.private


VS_CODE = b"""\
{
  // asked for once
  "inputs": [
    {"type": "promptString", "id": "ask-key", "description": "API Key", "password": true},
  ],
  "servers": {
    "Perplexity": {
      "type": "stdio", "command": "npx", "args": ["-y", "server-perplexity-ask"],
      "env": {"PERPLEXITY_API_KEY": "${input:ask-key}"}, "envFile": "${workspaceFolder}/.env",
    },
    "github": {"type": "http", "url": "https://api.githubcopilot.com/mcp/", "gallery": true},
    "events": {"type": "sse", "url": "${env:EVENTS}/stream", "dev": {"watch": "src/**"}},
  },
}
"""


@pytest.mark.requirement("B9")
def test_a_file_of_vs_code() -> None:
    result = import_servers(VS_CODE, "mcp.json")
    assert result.servers == {
        "perplexity": {
            "transport": "stdio",
            "command": ["npx", "-y", "server-perplexity-ask"],
            "env": {"PERPLEXITY_API_KEY": "${ASK_KEY}"},
        },
        "github": {"transport": "http", "url": "https://api.githubcopilot.com/mcp/"},
        "events": {"transport": "sse", "url": "${EVENTS}/stream"},
    }
    assert [each.removeprefix("mcp.json servers.") for each in result.warnings] == [
        "Perplexity.env.PERPLEXITY_API_KEY: asks for 'ask-key'; set the variable ASK_KEY instead: API Key",
        "Perplexity.envFile: is ignored; put its variables under env, or into the gateway's environment",
        "Perplexity: is renamed to perplexity",
        "github.gallery: is ignored; it is for the editor only",
        "events.dev: is ignored; it is for the editor only",
    ]
    document = parse(
        servers_file(result.servers), "toolcrib.yaml", {"ASK_KEY": "k", "EVENTS": "http://127.0.0.1:1"}
    )
    assert document.mcp.servers["events"].url == "http://127.0.0.1:1/stream"
    assert document.warnings == ()


@pytest.mark.requirement("B9")
def test_settings_of_vs_code() -> None:
    settings = {
        "editor.fontSize": 12,
        "mcp": {"inputs": [{"id": "k", "default": "d"}], "servers": {"a": {"command": "${input:k}"}}},
        "window.zoomLevel": 1,
    }
    result = found(settings)
    assert result.servers == {"a": {"transport": "stdio", "command": ["${K:-d}"]}}
    assert result.warnings[0].endswith("which are ignored: editor.fontSize, window.zoomLevel")
    assert len(result.warnings) == 2


@pytest.mark.requirement("B9")
@pytest.mark.parametrize(
    "given, ours",
    [
        ({"url": "https://h/mcp"}, {"transport": "http", "url": "https://h/mcp"}),
        ({"url": "https://h/sse/"}, {"transport": "sse", "url": "https://h/sse/"}),
        ({"url": "https://h/sse", "type": "http"}, {"transport": "http", "url": "https://h/sse"}),
        ({"serverUrl": "https://h/a"}, {"transport": "http", "url": "https://h/a"}),
        ({"httpUrl": "https://h/sse"}, {"transport": "http", "url": "https://h/sse"}),
        ({"url": "https://h/", "type": "streamable-http"}, {"transport": "http", "url": "https://h/"}),
        ({"url": "https://h/", "transport": "streamableHttp"}, {"transport": "http", "url": "https://h/"}),
        ({"url": "https://h/", "type": "SSE"}, {"transport": "sse", "url": "https://h/"}),
        (
            {"url": "https://h/", "headers": {"X-A": 5}},
            {"transport": "http", "url": "https://h/", "headers": {"X-A": "5"}},
        ),
        ({"command": "run"}, {"transport": "stdio", "command": ["run"]}),
        (
            {"command": ["run", "a"], "args": ["b", 1, True]},
            {"transport": "stdio", "command": ["run", "a", "b", "1", "true"]},
        ),
        (
            {"command": "run", "args": None, "env": {}, "cwd": "/x", "disabled": False, "autoApprove": []},
            {"transport": "stdio", "command": ["run"], "cwd": "/x"},
        ),
        ({"command": "run", "disabled": True}, {"transport": "stdio", "enabled": False, "command": ["run"]}),
        ({"command": "run", "enabled": False}, {"transport": "stdio", "enabled": False, "command": ["run"]}),
        (
            {"command": "run", "env": {"A": "x ${ y", "B": "$${z}"}},
            {"transport": "stdio", "command": ["run"], "env": {"A": "x $${ y", "B": "$$${z}"}},
        ),
    ],
)
def test_imported_settings(given: dict[str, Any], ours: dict[str, Any]) -> None:
    server, _warnings = one(given)
    assert server == ours


@pytest.mark.requirement("B9")
@pytest.mark.parametrize(
    "given, warning",
    [
        (
            {"command": "run", "alwaysAllow": ["x"]},
            ".alwaysAllow: is ignored; contexts and overrides control access to tools",
        ),
        (
            {"command": "run", "autoApprove": ["x"]},
            ".autoApprove: is ignored; contexts and overrides control access to tools",
        ),
        (
            {"command": "run", "timeout": 60},
            ".timeout: is ignored, since its unit differs between hosts; set defaults.timeout_ms",
        ),
        ({"command": "run", "icon": "x"}, ".icon: is unknown, and is ignored"),
        ({"command": "run", "url": "http://h/"}, ".url: is ignored, since the server uses another transport"),
        (
            {"url": "http://h/", "env": {"A": "b"}},
            ".env: is ignored, since the server is reached by its URL",
        ),
        (
            {"url": "http://h/", "serverUrl": "http://i/"},
            ".serverUrl: is ignored, since the server uses another transport",
        ),
        (
            {"type": "stdio", "transport": "sse", "command": "run"},
            ".transport: is unknown, and is ignored",
        ),
        ({"command": "run", "env": {"A": None}}, ".env.A: is not text, and is ignored"),
        ({"command": "run", "env": {"A=": "x"}}, '.env["A="]: is ignored: it is not a valid variable name'),
        ({"command": "run", "env": ["A=b"]}, ".env: is not a mapping, and is ignored"),
        ({"command": "run", "cwd": ["x"]}, ".cwd: is not text, and is ignored"),
        ({"command": "run", "disabled": 1}, ".disabled: is neither true nor false, and is ignored"),
        (
            {"command": "npx -y x"},
            ".command: contains a space and is used as one program name; write a list to pass arguments",
        ),
        (
            {"url": "http://h/", "headers": {"Host": "x"}},
            ".headers.Host: is ignored: it is set by the gateway itself",
        ),
        ({"url": "http://h/", "headers": {"A": "x\ny"}}, ".headers.A: is ignored: it must be one line"),
        (
            {"url": "http://h/", "headers": {"A": "x", "a": "y"}},
            ".headers.a: is ignored: it is given twice: header names are case-insensitive",
        ),
    ],
)
def test_unsupported_settings_are_reported(given: dict[str, Any], warning: str) -> None:
    server, warnings = one(given)
    assert server is not None
    assert len(warnings) == 1
    assert warnings[0].startswith(warning)


@pytest.mark.requirement("B9")
@pytest.mark.parametrize(
    "given, why",
    [
        (None, "it is not a mapping of settings"),
        (dict[str, Any](), "it has neither a command nor a url"),
        ({"type": "websocket", "url": "ws://h"}, "it has a type other than stdio, http and sse"),
        ({"type": 5, "command": "run"}, "it has a type other than stdio, http and sse"),
        ({"type": "http", "command": "run"}, "it has no url"),
        ({"type": "stdio", "url": "http://h/"}, "it has a command or args other than text"),
        ({"command": "run", "args": "-v"}, "it has a command or args other than text"),
        ({"command": "run", "args": [None]}, "it has a command or args other than text"),
        ({"command": " "}, "command must begin with the name of a program"),
        ({"command": "a\0b"}, "command[0] contains a NUL character"),
        ({"url": "nowhere"}, "url must be a URL, such as https://tools.example.com"),
    ],
)
def test_a_server_that_cannot_be_used_is_left_out(given: Any, why: str) -> None:
    server, warnings = one(given)
    assert server is None
    assert any(each.startswith(f": is skipped: {why}") for each in warnings), warnings


def test_an_address_of_the_wrong_kind_is_left_out() -> None:
    server, warnings = one({"url": ["x"]})
    assert (server, warnings) == (None, [".url: is not text, and is ignored"])


def test_names_become_ids_of_their_own() -> None:
    names = ["My Server", "my_server", "my-server", "demo", "天气", "☂", "x" * 80]
    result = found({"mcpServers": {name: {"command": "run"} for name in names}})
    assert list(result.servers) == [
        "my_server",
        "my_server_2",
        "my-server_3",
        "mcp_demo",
        "server",
        "server_2",
        "x" * 63,
    ]
    assert matches("config", "names become ids of their own", result.warnings[0])
    assert len(result.warnings) == 7
    assert list(loaded(result).mcp.servers) == list(result.servers)


def test_two_kinds_of_servers_in_one_file() -> None:
    document = {"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "y"}}}
    assert {key: each["command"] for key, each in found(document).servers.items()} == {
        "a": ["x"],
        "a_2": ["y"],
    }


def test_duplicates_are_reported() -> None:
    result = import_servers(b'{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "mcp.json")
    assert result.servers == {"a": {"transport": "stdio", "command": ["y"]}}
    assert matches("config", "duplicates are reported", "\n".join(result.warnings))


@pytest.mark.requirement("B9", "I2")
@pytest.mark.parametrize(
    "given, noted",
    [
        ({"command": "run", "env": {"API_KEY": "x"}}, ["env.API_KEY"]),
        ({"command": "run", "env": {"DEBUG": "1", "API_KEY": "${env:API_KEY}"}}, []),
        ({"command": "run", "args": ["--token", "x"]}, ["command[2]"]),
        (
            {"url": "https://h/?key=x", "headers": {"Authorization": "Bearer x"}},
            ["url", "headers.Authorization"],
        ),
        ({"url": "https://h/", "headers": {"Authorization": "Bearer ${env:X}", "A": "b"}}, []),
    ],
)
def test_secrets_are_kept_with_a_word_of_advice(given: dict[str, Any], noted: list[str]) -> None:
    _server, warnings = one(given)
    assert warnings == [f"mcp.servers.s.{each}{ADVICE}" for each in noted]


@pytest.mark.parametrize(
    "given, private",
    [
        ({"command": "run"}, False),
        ({"command": "run", "env": {"A": "b"}}, True),
        ({"url": "https://h/"}, False),
        ({"url": "https://h/?key=x"}, True),
        ({"url": "https://h/", "headers": {"A": "b"}}, True),
    ],
)
def test_secrets_of_imported_config_are_detected(given: dict[str, Any], private: bool) -> None:
    assert found({"servers": {"s": given}}).private is private


@pytest.mark.parametrize(
    "document, said",
    [
        (dict[str, Any](), "mcp.json: contains no MCP servers: it has neither mcpServers nor servers"),
        (["servers"], "mcp.json: contains no MCP servers: it has neither mcpServers nor servers"),
        ({"mcpServers": ["a"]}, "mcp.json: contains no MCP servers: it has neither mcpServers nor servers"),
        (
            {"mcpServers": {str(n): dict[str, Any]() for n in range(MAX_IMPORTED_SERVERS + 1)}},
            "mcp.json: contains more than 500 servers",
        ),
    ],
)
def test_a_file_without_servers_is_refused(document: object, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        found(document)
    assert str(refused.value).startswith(said)


def test_oversized_import_is_refused() -> None:
    """Quotes are written twice, so that a file that fits may become one that does not."""
    result = found({"servers": {"s": {"command": "x", "args": ["- " + "'" * 600_000]}}})
    with pytest.raises(ConfigError) as raised:
        servers_file(result.servers)
    assert matches("config", "oversized import is refused", str(raised.value))


TEXT = st.text(max_size=12) | st.sampled_from(
    [
        "${env:A}",
        "${input:x}",
        "${A:-b}",
        "${workspaceFolder}",
        "$${",
        "${",
        "null",
        "1e3",
        "- x",
        "a: b",
        "'",
        "\0",
        "\r\n",
        "http://${env:HOST}:${env:PORT}/mcp",
        "https://h/sse",
    ]
)
LOOSE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
PAIRS = st.dictionaries(TEXT | st.sampled_from(["A", "a", "Host", "API_KEY"]), TEXT | LOOSE, max_size=3)
SERVER = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["stdio", "http", "sse", "streamable-http", "ws"]) | LOOSE,
        "command": TEXT | LOOSE,
        "args": st.lists(TEXT, max_size=3) | LOOSE,
        "url": st.just("https://h/mcp?k=v") | TEXT | LOOSE,
        "headers": PAIRS | LOOSE,
        "env": PAIRS | LOOSE,
        "cwd": TEXT | LOOSE,
        "disabled": st.booleans() | LOOSE,
        "other": LOOSE,
    },
)
NAMES = TEXT | st.sampled_from(["demo", "A b", "a_b"])
INPUT = st.dictionaries(st.sampled_from(["id", "default", "description"]), TEXT | LOOSE)
FILES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"mcpServers": st.dictionaries(NAMES, SERVER | LOOSE, max_size=4)},
    optional={"inputs": st.lists(INPUT, max_size=3) | LOOSE},
)


@given(FILES)
@pytest.mark.requirement("B9")
def test_imported_config_is_always_valid(document: dict[str, Any]) -> None:
    result = found(document)
    ours = loaded(result)
    assert set(ours.mcp.servers) == set(result.servers)
    assert len(result.servers) + len(result.warnings) >= len(document["mcpServers"])


@given(
    st.dictionaries(st.sampled_from("abc"), st.lists(TEXT.filter(lambda text: "${" not in text), min_size=1))
)
@pytest.mark.requirement("B9")
def test_programs_come_through_to_the_letter(commands: dict[str, list[str]]) -> None:
    document = {name: {"command": words[0], "args": words[1:]} for name, words in commands.items()}
    servers = loaded(found({"servers": document})).mcp.servers
    for name, server in servers.items():
        assert server.command == tuple(commands[name])
