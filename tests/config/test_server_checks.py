"""MCP servers in the config: valid settings, and what servers must not share."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.faulty import faults
from tests.texts import matches
from toolcrib.config import ConfigError, Document, default_document, export, load, parse, reread
from toolcrib.config.mcp import server_id
from toolcrib.names import canonical

START = "mcp:\n  servers:\n"
OVERLAY = "run-time overlay"


def config(**servers: str) -> str:
    """Write a config, one server a line; the first is on line 3."""
    return START + "".join(f"    {name}: {{{said}}}\n" for name, said in servers.items())


def loaded(text: str) -> Document:
    return parse(text, "toolcrib.yaml", {})


@pytest.mark.parametrize(
    "name, id",
    [
        ("files", "files"),
        ("my-server.v2", "my-server.v2"),
        ("3d", "3d"),
        ("a:b", "a_b"),
        ("My Server", "my_server"),
        ("GitHub", "git_hub"),
        ("-x", "x"),
        ("天气", ""),
    ],
)
def test_a_name_becomes_an_id(name: str, id: str) -> None:
    assert server_id(name) == id


@given(st.text(max_size=70))
def test_every_id_can_be_the_first_half_of_a_name(name: str) -> None:
    document = {"mcp": {"servers": {name: {"transport": "stdio", "command": ["run"]}}}}
    try:
        found = load(None, env={}, overlay=document)
    except ConfigError as error:
        refused = error
    else:
        (known,) = found.mcp.servers
        assert canonical(known, "tool") == f"{known}:tool"
        assert server_id(known) == known
        return
    assert [fault.where for fault in refused.faults] == [("mcp", "servers", name)]


@pytest.mark.requirement("B2", "B7")
def test_server_settings_or_defaults() -> None:
    document = loaded(
        config(Files="transport: stdio, command: [run, '']", web="transport: sse, url: 'http://h/'")
    )
    assert list(document.mcp.servers) == ["files", "web"]
    files = document.mcp.servers["files"]
    assert files.command == ("run", "")
    assert (files.start, files.idle_stop_ms, files.start_timeout_ms, files.poll_ms) == (
        "eager",
        None,
        30_000,
        None,
    )
    assert (files.pin, files.tools, files.enabled) == (None, (), True)
    assert (files.relay, files.max_connections) == (None, None)
    assert (files.connection_idle_ms, document.mcp.max_copies) == (24_000, 32)
    assert (document.mcp.enabled, document.mcp.allow_stdio, document.mcp.grace_ms) == (True, False, 600_000)
    assert document.reload.watch is False
    assert document.added == frozenset()


@pytest.mark.requirement("B7")
def test_a_list_of_tools_is_read_whole() -> None:
    text = config(
        s="transport: stdio, command: [run], idle_stop_ms: 5, poll_ms: 1000, tools: [{name: a b, "
        "expose_as: ab, description: D, speech_field: f, speech_template: 'It is {f}.', timeout_ms: 7}]"
    )
    (tool,) = loaded(text).mcp.servers["s"].tools
    assert (tool.name, tool.expose_as, tool.speech_field, tool.speech_template, tool.timeout_ms) == (
        "a b",
        "ab",
        "f",
        "It is {f}.",
        7,
    )


STDIO = "transport: stdio, command: [run]"
HTTP = "transport: http, url: 'http://h/'"


@pytest.mark.requirement("I2")
@pytest.mark.parametrize(
    "said, fault",
    [
        ("transport: stdio", "command: is missing; a stdio server is started by it"),
        ("transport: http", "url: is missing; an http server is reached by it"),
        ("transport: sse, url: ''", "url: is missing; an sse server is reached by it"),
        (
            "transport: stdio, command: npx -y thing",
            "command: must be a list of the program and its arguments, such as [npx, -y, some-server]",
        ),
        ("transport: stdio, command: ['']", "command: must begin with the name of a program"),
        ("transport: stdio, command: []", "command: must not be empty"),
        ("transport: stdio, command: [run, 5]", "command[1]: must be text; put it in quotes"),
        (f"{STDIO}, url: 'http://h/'", "url: is for http and sse; a stdio server is started by its command"),
        (
            f"{STDIO}, headers: {{A: b}}",
            "headers: is for http and sse; a stdio server is started by its command",
        ),
        (f"{HTTP}, command: [run]", "command: is for stdio; an http server is reached by its url"),
        (f"{HTTP}, env: {{A: b}}", "env: is for stdio; an http server is reached by its url"),
        (f"{HTTP}, cwd: .", "cwd: is for stdio; an http server is reached by its url"),
        (f"{HTTP}, idle_stop_ms: 5", "idle_stop_ms: is for stdio; an http server is reached by its url"),
        (f"{HTTP}, enabled: off, cwd: .", "cwd: is for stdio; an http server is reached by its url"),
        (f"{STDIO}, tools: [{{name: a}}, {{name: a}}]", "tools[1].name: is listed twice; keep one of them"),
        (f"{STDIO}, tools: [{{name: ''}}]", "tools[0].name: must not be empty"),
        (
            f"{STDIO}, tools: [{{name: a, timeout: 5}}]",
            "tools[0].timeout: is not a setting; did you mean timeout_ms?",
        ),
        (f"{STDIO}, env: {{A=B: c}}", 'env["A=B"]: is not a valid variable name; use letters, digits and _'),
        (f"{STDIO}, env: {{A: 5}}", "env.A: must be text; put it in quotes"),
        (f"{STDIO}, start: late", "start: must be 'eager' or 'lazy'"),
        (f"{STDIO}, pin: yes", "pin: must be 'strict', 'notify' or 'off'"),
        (f"{STDIO}, relay: [secrets]", "relay[0]: must be 'elicitation', 'sampling' or 'roots'"),
        (f"{STDIO}, max_connections: 0", "max_connections: must be 1 or more"),
        (f"{STDIO}, limits: {{memory_mb: 0}}", "limits.memory_mb: must be 16 or more"),
        (f"{STDIO}, limits: {{memory_mb: 1.5}}", "limits.memory_mb: must be a whole number"),
        (f"{STDIO}, limits: {{cpu_seconds: -1}}", "limits.cpu_seconds: must be 1 or more"),
        (f"{STDIO}, limits: {{open_files: 3}}", "limits.open_files: must be 16 or more"),
        (f"{STDIO}, limits: {{processes: 0}}", "limits.processes: must be 1 or more"),
        (f"{STDIO}, limits: {{file_size_mb: 0}}", "limits.file_size_mb: must be 1 or more"),
        (f"{STDIO}, limits: {{memory: 64}}", "limits.memory: is not a setting; did you mean memory_mb?"),
        (f"{HTTP}, limits: {{open_files: 64}}", "limits: is for stdio; an http server is reached by its url"),
        (f"{STDIO}, poll_ms: 5", "poll_ms: must be 100 or more"),
        (f"{STDIO}, start_timeout_ms: 0", "start_timeout_ms: must be 1 or more"),
        (f"{STDIO}, idle_stop_ms: 86400001", "idle_stop_ms: must be 86400000 or less"),
        (f"{STDIO}, restart: {{max_restarts: -1}}", "restart.max_restarts: must be 0 or more"),
        (f"{STDIO}, restart: {{max_restarts: 5000}}", "restart.max_restarts: must be 1000 or less"),
        (f"{STDIO}, args: [x]", "args: is not a setting; use one of transport,"),
        (
            f"{HTTP}, headers: {{A b: c}}",
            'headers["A b"]: is not a valid header name; use letters, digits and -',
        ),
        (f'{HTTP}, headers: {{A: "b\\r\\nC: d"}}', "headers.A: must be one line, without control characters"),
        (
            f"{HTTP}, headers: {{A: b, a: c}}",
            "headers.a: is given twice: header names are case-insensitive",
        ),
        ("transport: http, url: 'http://h/ x'", "url: must be a URL, such as https://tools.example.com"),
        ('transport: http, url: "http://h/\\nx"', "url: must be a URL, such as https://tools.example.com"),
    ],
)
def test_invalid_settings_are_reported(said: str, fault: str) -> None:
    (found,) = faults(config(s=said))
    assert found.startswith(f"toolcrib.yaml:3 mcp.servers.s.{fault}")


@pytest.mark.parametrize(
    "name",
    ["Host", "content-length", "Connection", "Transfer-Encoding", "TE", "Accept", "Mcp-Session-Id", "MCP-x"],
)
def test_headers_of_the_protocol_are_the_gateways_own(name: str) -> None:
    (found,) = faults(config(s=f"{HTTP}, headers: {{{name}: b}}"))
    assert found.endswith("is set by the gateway itself; remove it")


@pytest.mark.parametrize("said", ["headers: {}", "url: '${URL:-}'"])
def test_empty_setting_of_other_transport_is_ignored(said: str) -> None:
    assert loaded(config(s=f"{STDIO}, {said}")).mcp.servers["s"].command == ("run",)


@pytest.mark.parametrize(
    "said, fault",
    [
        ("mcp: {grace_ms: -1}", "mcp.grace_ms: must be 0 or more"),
        ("mcp: {allow_stdio: maybe}", "mcp.allow_stdio: must be true or false"),
        ("mcp: {servers: {' ': {transport: http}}}", 'mcp.servers[" "]: is not a valid server name'),
        (
            f"mcp: {{servers: {{{'x' * 64}: {{{HTTP}}}}}}}",
            f"mcp.servers.{'x' * 64}: is not a valid server name",
        ),
    ],
)
def test_settings_for_all_servers_are_checked(said: str, fault: str) -> None:
    (found,) = faults(said)
    assert found.startswith(f"toolcrib.yaml:1 {fault}")


def test_ids_belong_to_one_server_each() -> None:
    servers = dict.fromkeys(("1_two", "1-two", "Demo", "tools", "crib", "local", "1 Two"), STDIO)
    assert [fault.removesuffix("; choose another name") for fault in faults(config(**servers))] == [
        'toolcrib.yaml:4 mcp.servers["1-two"]: has the id 1-two, which is used by mcp.servers["1_two"]',
        "toolcrib.yaml:5 mcp.servers.Demo: has the id demo, which is reserved",
        "toolcrib.yaml:6 mcp.servers.tools: has the id tools, which is reserved",
        "toolcrib.yaml:7 mcp.servers.crib: has the id crib, which is reserved",
        "toolcrib.yaml:8 mcp.servers.local: has the id local, which is reserved",
        'toolcrib.yaml:9 mcp.servers["1 Two"]: has the id 1_two, which is used by mcp.servers["1_two"]',
    ]


def test_a_module_of_functions_has_its_id_already() -> None:
    (found,) = faults(config(files_of=STDIO) + "functions: [my.own.FilesOf]\n")
    assert found.endswith(
        "has the id files_of, which is used by a module under functions; choose another name"
    )


@pytest.mark.requirement("A2", "B7")
def test_a_safe_name_is_given_to_one_tool() -> None:
    tools = "tools: [{name: x, expose_as: one}, {name: y, expose_as: two}]"
    text = config(a=f"{STDIO}, {tools}", b=f"{STDIO}, {tools}") + "overrides: {'c:z': {expose_as: two}}\n"
    assert [fault.removesuffix("; a name must refer to one tool") for fault in faults(text)] == [
        'toolcrib.yaml:3 mcp.servers.a.tools[1].expose_as: is also given to overrides["c:z"]',
        "toolcrib.yaml:4 mcp.servers.b.tools[0].expose_as: is also given to mcp.servers.a.tools[0]",
        'toolcrib.yaml:4 mcp.servers.b.tools[1].expose_as: is also given to overrides["c:z"]',
    ]


@pytest.mark.parametrize(
    "rest", ["overrides: {'a:x': {expose_as: one}}\n", "overrides: {'a:x': {expose_as: other}}\n"]
)
def test_an_override_may_name_the_same_tool(rest: str) -> None:
    assert loaded(config(a=f"{STDIO}, tools: [{{name: x, expose_as: one}}]") + rest)


def test_a_server_that_is_off_may_keep_a_name() -> None:
    tools = "tools: [{name: x, expose_as: one}]"
    document = loaded(config(a=f"{STDIO}, {tools}", b=f"{STDIO}, enabled: no, {tools}"))
    assert document.mcp.servers["b"].enabled is False


def overlay(**servers: Any) -> dict[str, Any]:
    return {"mcp": {"servers": servers}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "toolcrib.yaml"
    path.write_text(config(**{"My Files": f"{STDIO}, cwd: here"}))
    return path


ADDED: dict[str, Any] = {"transport": "http", "url": "http://h/?k=hunter2", "headers": {"A": "${HIDDEN}"}}


@pytest.mark.requirement("B8", "I2", "I7")
def test_added_servers_are_marked_and_expand_no_variables(file: Path) -> None:
    document = load(file, env={"HIDDEN": "hunter3"}, overlay=overlay(web=ADDED))
    assert list(document.mcp.servers) == ["my_files", "web"]
    assert document.added == {"web"}
    assert document.mcp.servers["web"].headers == {"A": "${HIDDEN}"}
    assert {"${HIDDEN}", "hunter2"} <= document.secret_texts
    exported = export(document.raw)
    assert "hunter" not in exported
    assert "HIDDEN" not in exported
    assert reread(document, env={}, overlay={}).added == frozenset()


@pytest.mark.requirement("B8", "I7")
@pytest.mark.parametrize("name", ["My Files", "my_files", "my-files"])
def test_a_server_of_the_file_is_the_files_alone(file: Path, name: str) -> None:
    """Else a caller could slip variables under a program that the operator starts."""
    theirs: dict[str, Any] = {"transport": "stdio", "command": ["x"], "env": {"LD_PRELOAD": "x"}}
    document = load(file, env={}, overlay=overlay(**{name: theirs}))
    (server,) = document.mcp.servers.values()
    assert (server.command, server.env) == (("run",), {})
    assert document.added == frozenset()
    (warning,) = document.warnings
    assert matches("config", "a server of the file is the files alone", str(warning), file=file)


@pytest.mark.requirement("B8")
def test_only_the_file_allows_programs(file: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(file, env={}, overlay={"mcp": {"allow_stdio": True, "servers": {}}})
    assert matches("config", "only the file allows programs", str(raised.value), overlay=OVERLAY)


@pytest.mark.parametrize(
    "server, fault",
    [
        ({"transport": "http"}, "mcp.servers.web.url: is missing"),
        (
            {"transport": "http", "url": "x"},
            "mcp.servers.web.url: must be a URL, such as https://tools.example.com",
        ),
        ({"command": ["x"]}, "mcp.servers.web.transport: is missing"),
        ({**ADDED, "headers": {"A": "x\0"}}, "mcp.servers.web.headers.A: must be one line"),
        ({"transport": "stdio", "command": ["x\0"]}, "mcp.servers.web.command[0]: contains a NUL character"),
        (
            {"transport": "stdio", "command": ["x"], "cwd": "\0"},
            "mcp.servers.web.cwd: contains a NUL character",
        ),
        (5, "mcp.servers.web: must be a mapping of settings"),
    ],
)
def test_faults_of_added_servers_are_attributed(file: Path, server: Any, fault: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(file, env={}, overlay=overlay(web=server))
    assert str(refused.value).startswith(f"{OVERLAY} {fault}")


def test_document_without_file_reloads_with_overlay(file: Path) -> None:
    first = parse("contexts: {a: {tools: [x]}}\nmcp: {grace_ms: 5}", "toolcrib.yaml", {})
    assert reread(first, env={}, overlay={}) is first
    read = reread(first, env={}, overlay={**overlay(web=ADDED), "contexts": {"b": {}}})
    assert set(read.contexts) == {"a", "b", "default"}
    assert (read.mcp.grace_ms, read.added) == (5, {"web"})
    assert reread(default_document({}), env={}, overlay=overlay(web=ADDED)).added == {"web"}
    of_file = load(file, env={})
    file.write_text("legacy: false")
    assert reread(of_file, env={}, overlay={}).legacy is False


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example", "ü..b"])
def test_a_host_that_no_lookup_takes_is_a_fault_of_the_file(host: str) -> None:
    (fault,) = faults(f"mcp: {{servers: {{web: {{transport: http, url: 'http://{host}/mcp'}}}}}}")
    assert fault.startswith("toolcrib.yaml:1 mcp.servers.web.url: is unusable: it")


def test_forbidden_host_of_added_server_is_blocked_later(file: Path) -> None:
    """What was stored before it was refused must not keep the gateway from starting."""
    bad = {"transport": "http", "url": "http://a..b/mcp"}
    assert load(file, env={}, overlay=overlay(web=bad)).mcp.servers["web"].url == bad["url"]
