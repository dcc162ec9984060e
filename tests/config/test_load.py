"""From a file to a document."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.config.faulty import faults
from tests.texts import matches
from toolcrib.config import ConfigError, Document, default_document, export, load, parse, reread
from toolcrib.model import Deprecation, RateLimit

WHOLE = """\
server: {host: 127.0.0.1, port: 6740, public_url: null,
         allowed_hosts: [tools.example.com, "[::1]:8443", "fe80::1"], trusted_proxies: [10.0.0.1]}
store: sqlite:///.toolcrib/toolcrib.db
shared: memory
auth: {mode: keys, admin_key: "${TOOLCRIB_ADMIN_KEY:-}"}
functions: ["my_package.tools"]
openapi: {petstore: {document: ./petstore.yaml, base_url: "http://127.0.0.1:9000"}}
mcp:
  enabled: true
  servers:
    aviation_atis:
      transport: stdio
      command: ["python3", "-m", "toolcrib.servers.aviation_atis", "--config", "atis.yaml"]
      env: {METNO_USER_AGENT: "someone"}
      cwd: .
      start: eager
      restart: {enabled: true, max_restarts: 5, backoff_ms: 1000}
      defaults: {timeout_ms: 10000, slow_response_threshold_ms: 2000, slow_response_message: "One moment…"}
      pin: off
      tools:
        - {name: get_atis, expose_as: mcp_aviation_atis_get_atis, description: "…", speech_field: atis_text}
contexts:
  default: {tools: ["*"]}
  aviation_support:
    {provider: openai_realtime, tools: [transfer, mcp_aviation_atis_get_atis], style: safe, max_tools: 64}
overrides:
  "aviation_atis:*": {category: query, cache_ttl: 60, permissions: ["aviation:read"], energy_cost: 2}
  "cards:get":
    rate_limit: {maxCalls: 60, windowMs: 60000}
    timeout_ms: 500
    expose_as: get_card
    hidden: no
    deprecated: {since: "2.0", removal_date: 2027-01-31}
energy: {start: 100, recover_per_s: 1, default_cost: 1}
limits: {per_user: 600/min, per_tool: {"cards:*": 10/s}, result_bytes: 8388608}
allow_private: [127.0.0.0/8]
metrics: {prefix: toolcrib}
log: {level: debug}
search: {url: "http://127.0.0.1:8888", timeout_ms: 3000}
legacy: on
"""


@pytest.mark.requirement("I2")
def test_the_whole_file_is_understood() -> None:
    document = parse(WHOLE, "toolcrib.yaml", {})
    assert document.server.port == 6740
    assert document.server.trusted_proxies == ("10.0.0.1/32",)
    assert document.auth.admin_key is None
    assert document.functions == ("my_package.tools",)
    assert document.mcp.servers["aviation_atis"].pin == "off"
    assert document.mcp.servers["aviation_atis"].tools[0].expose_as == "mcp_aviation_atis_get_atis"
    assert document.contexts["aviation_support"].max_tools == 64
    assert document.overrides["aviation_atis:*"].permissions == frozenset({"aviation:read"})
    card = document.overrides["cards:get"]
    assert card.rate_limit == RateLimit(60, 60_000)
    assert card.hidden is False
    assert card.deprecated == Deprecation(since="2.0", removal_date="2027-01-31")
    assert document.limits.per_tool == {"cards:*": RateLimit(10, 1_000)}
    assert document.legacy is True
    assert document.search.url == "http://127.0.0.1:8888"
    assert document.secret_texts == {"someone"}


def test_nothing_at_all_is_the_default() -> None:
    document = default_document({})
    assert (document.server.host, document.server.port) == ("127.0.0.1", None)
    assert document.store == "sqlite:///.toolcrib/toolcrib.db"
    assert document.shared == "memory"
    assert document.limits.per_user == RateLimit(600, 60_000)
    assert document.limits.body_bytes == 4 << 20
    assert list(document.contexts) == ["default"]
    assert document.source is None
    assert parse("", "empty.yaml", {}) == document


def test_empty_section_equals_missing_section() -> None:
    assert parse("server:\ncontexts:\nfunctions:\nstore:\n", "toolcrib.yaml", {}).server.host == "127.0.0.1"


@pytest.mark.parametrize(
    "text, env, store",
    [
        ("", {}, "sqlite:///.toolcrib/toolcrib.db"),
        ("", {"TOOLCRIB_HOME": "/var/lib/toolcrib"}, "sqlite:////var/lib/toolcrib/toolcrib.db"),
        ("store: sqlite:///mine.db", {"TOOLCRIB_HOME": "/x"}, "sqlite:///mine.db"),
        ("store: ${DB}", {"DB": "postgresql://h/db"}, "postgresql://h/db"),
    ],
)
def test_default_database_is_in_home_directory(text: str, env: dict[str, str], store: str) -> None:
    assert parse(text, "toolcrib.yaml", env).store == store


@pytest.mark.requirement("I2")
def test_references_take_the_type_of_their_setting() -> None:
    text = """\
server: {port: "${PORT}", public_url: "${URL:-}"}
limits: {per_user: "${RATE:-5/s}", result_bytes: "${BYTES:-1024}"}
legacy: ${LEGACY}
contexts: {a: {max_tools: "${MOST:-}", min_energy: "${ENERGY:-1.5}"}}
overrides: {b: {hidden: "${HIDDEN:-}"}}
"""
    document = parse(text, "toolcrib.yaml", {"PORT": "7000", "LEGACY": "false"})
    assert document.server.port == 7000
    assert document.server.public_url is None
    assert document.limits.per_user == RateLimit(5, 1_000)
    assert document.limits.result_bytes == 1024
    assert document.legacy is False
    assert document.contexts["a"].max_tools is None
    assert document.contexts["a"].min_energy == 1.5
    assert document.overrides["b"].hidden is None


@pytest.mark.requirement("I2")
def test_admin_key_of_environment_takes_precedence() -> None:
    text = "auth: {admin_key: a-key-from-the-file}"
    assert parse(text, "toolcrib.yaml", {}).auth.admin_key == "a-key-from-the-file"
    document = parse(text, "toolcrib.yaml", {"TOOLCRIB_ADMIN_KEY": "a-key-from-outside"})
    assert document.auth.admin_key == "a-key-from-outside"
    assert {"a-key-from-the-file", "a-key-from-outside"} <= document.secret_texts
    default = default_document({"TOOLCRIB_ADMIN_KEY": "a-key-from-outside"})
    assert default.secret_texts == {"a-key-from-outside"}


@pytest.mark.requirement("I2")
def test_the_old_admin_key_is_a_secret_too() -> None:
    document = parse("auth: {admin_key_old: in-file}", "toolcrib.yaml", {"TOOLCRIB_ADMIN_KEY_OLD": "outside"})
    assert document.auth.admin_key_old == "outside"
    assert {"in-file", "outside"} <= document.secret_texts
    assert "in-file" not in export(document.raw)


def test_no_limit_is_written_as_null() -> None:
    assert parse("limits: {per_user: null}", "toolcrib.yaml", {}).limits.per_user is None


def test_unreadable_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone.yaml: cannot be read: No such file or directory$"):
        load(tmp_path / "gone.yaml", env={})
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        load(tmp_path, env={})


def test_a_file_that_has_no_end_is_not_read_to_it() -> None:
    with pytest.raises(ConfigError) as raised:
        load(Path("/dev/zero"), env={})
    assert matches("config", "a file that has no end is not read to it", str(raised.value))


def test_a_syntax_error_names_the_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.yaml"
    path.write_text("server: {\n  host: [\n")
    with pytest.raises(ConfigError) as refused:
        load(path, env={})
    assert str(refused.value).startswith(f"{path}:3: is not valid YAML: ")


CANARY = "s3cr3t-CANARY-value"
PLACES: list[str] = [
    "auth: {admin_key: [%s]}",
    "auth: {mode: %s}",
    "auth: %s",
    "auth: {anonymous: {context: %s}}",
    "store: %s",
    "store: mysql://u:%s@h/db",
    "store: postgresql//u:%s@h/db",
    "shared: redis://:%s@h",
    "server: {port: %s, public_url: 'ftp://%s', host: '%s ', trusted_proxies: [%s], allowed_hosts: ['%s /']}",
    "functions: ['%s x']",
    "contexts: {a: {tools: ['%s ?'], style: %s, provider: %s, max_tools: %s, search: %s, urgent: [%s]}}",
    "contexts: {a: %s}",
    "overrides: {a: {category: %s, cache_ttl: %s, rate_limit: %s, expose_as: %s}}",
    "overrides: {a: {deprecated: {since: '1', removal_date: %s}}}",
    "overrides: {a: {permissions: %s, hidden: %s, timeout_ms: %s}}",
    "limits: {per_user: %s, per_tool: {x: %s}, result_bytes: %s}",
    "metrics: {prefix: '%s!'}\nlog: {level: %s}",
    "mcp: {servers: {s: {transport: %s, url: %s, headers: {A: [%s]}, env: {B: {c: %s}}, pin: %s}}}",
    "mcp: {servers: {s: {transport: stdio, command: %s, headers: %s}}}",
    "allow_private: [%s]\nlegacy: %s\nenergy: {start: %s}\nopenapi: {a: {base_url: %s}}",
    "search: {url: %s}\nmcp: {servers: {s: {transport: http, url: '%s'}}}",
    "auth: {admin_key: '${%s'}",
    "auth: {admin_key: '%s",
    "auth: {admin_key: %s: x}",
    "auth: {admin_key: &a %s}\nstore: *a",
    "auth: {admin_key: !!binary %s}",
    "auth: {admin_key: %s, admin_key: x%s}",
]


@pytest.mark.requirement("I2")
@pytest.mark.parametrize("place", PLACES)
def test_no_fault_shows_a_value(place: str) -> None:
    for value in (CANARY, "${CANARY}"):
        text = place.replace("%s", value)
        found = "\n".join(faults(text, {"CANARY": CANARY}))
        assert CANARY not in found


LEAVES = st.sampled_from([CANARY, "${CANARY}", f"x {CANARY}", f"postgresql://u:{CANARY}@h/db", 1, None, True])
SECTIONS = [
    "server",
    "auth",
    "contexts",
    "overrides",
    "limits",
    "mcp",
    "store",
    "functions",
    "openapi",
    "log",
]
NAMES = [
    "host",
    "port",
    "admin_key",
    "mode",
    "tools",
    "a",
    "servers",
    "headers",
    "env",
    "per_user",
    "url",
    "transport",
]
TREES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


def outcome(document: dict[str, Any], through: bool) -> Document | ConfigError:
    """Load a document as an overlay or as a file."""
    env = {"CANARY": CANARY}
    try:
        if through:
            return load(None, env=env, overlay=document)
        return parse(yaml.safe_dump(document), "toolcrib.yaml", env)
    except ConfigError as error:
        return error


@given(st.dictionaries(st.sampled_from(SECTIONS), TREES, max_size=5), st.booleans())
@pytest.mark.requirement("I2")
def test_secrets_are_in_no_fault_and_no_picture_of_the_document(
    document: dict[str, Any], through: bool
) -> None:
    found = outcome(document, through)
    if isinstance(found, ConfigError):
        assert CANARY not in str(found)
        assert CANARY not in repr(found.faults)
        assert found.__context__ is None
    else:
        assert CANARY not in repr(found.warnings)


@pytest.mark.requirement("I2")
def test_a_picture_of_the_document_shows_no_secret() -> None:
    text = """\
auth: {admin_key: "%s"}
store: postgresql://u:%s@h/db
search: {url: "http://u:%s@h/"}
openapi: {a: {document: "http://u:%s@h/", base_url: "http://u:%s@h/"}}
mcp:
  servers:
    h: {transport: http, url: "http://u:%s@h/", headers: {A: %s}}
    s: {transport: stdio, command: [x, %s], env: {B: %s}}
""".replace("%s", CANARY)
    document = parse(text, "toolcrib.yaml", {})
    assert CANARY not in repr(document)
    assert CANARY in document.secret_texts


def test_loading_needs_nothing_of_the_servers() -> None:
    heavy = ("mcp", "starlette", "aiohttp", "sqlalchemy")
    code = f"import sys, toolcrib.config; print([each for each in {heavy} if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reload_waits_for_a_file_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "toolcrib.yaml"
    path.write_text("server: {port: 7001}\n")
    document = load(path, env={})
    path.write_text("")

    def write(_: float) -> None:
        path.write_text("server: {port: 7002}\n")

    monkeypatch.setattr(time, "sleep", write)
    assert reread(document, env={}, overlay={}).server.port == 7002


def test_reload_rereads_file_changed_during_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "toolcrib.yaml"
    path.write_text("server: {port: 7001}\n")
    document = load(path, env={})
    stats = [os.stat_result((0,) * 6 + (size,) + (0,) * 3) for size in (1, 2, 3, 3)]

    def stat(_: Path) -> os.stat_result:
        return stats.pop(0)

    monkeypatch.setattr(Path, "stat", stat)
    assert reread(document, env={}, overlay={}).server.port == 7001
    assert stats == []


def test_reload_refuses_a_file_that_stays_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "toolcrib.yaml"
    path.write_text("server: {port: 7001}\n")
    document = load(path, env={})
    path.write_text("")
    monkeypatch.setattr(sys.modules[load.__module__], "REREAD_SECONDS", 0.0)
    with pytest.raises(ConfigError) as caught:
        reread(document, env={}, overlay={})
    assert [fault.file for fault in caught.value.faults] == [str(path)]


def test_reload_reads_an_empty_file_that_was_empty_before(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.yaml"
    path.write_text("server: {port: 7001}\n")
    first = load(path, env={})
    path.write_text("")
    in_force = load(path, env={})
    assert reread(first, env={}, overlay={}, in_force=in_force).server == in_force.server
    with pytest.raises(ConfigError):
        reread(in_force, env={}, overlay={}, in_force=first)
