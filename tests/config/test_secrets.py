"""Which values are secret, and how they are covered."""

from dataclasses import replace
from typing import Any

import pytest

from toolcrib.config import export, parse
from toolcrib.config.secrets import audited_server, find_secrets, mask


def server(**settings: Any) -> dict[str, Any]:
    return {"mcp": {"servers": {"s": settings}}}


@pytest.mark.requirement("I2")
@pytest.mark.parametrize(
    "document, secrets",
    [
        ({"auth": {"admin_key": "k"}}, {"k"}),
        ({"auth": {"admin_key": ""}}, set[str]()),
        (server(headers={"Authorization": "Bearer t"}), {"Bearer t", "t"}),
        (server(env={"TOKEN": "t", "DEBUG": 1}), {"t"}),
        (server(url="http://u:p@h/", command=["run"]), {"p"}),
        (server(url="https://t@h/mcp"), {"t"}),
        (server(url="https://h/mcp?key=a%2Fb&v=2&last#x"), {"a%2Fb", "a/b", "2", "last"}),
        (server(url="https://h/s/Zm9vYmFyYmF6cXV4MTIzNA/mcp"), {"Zm9vYmFyYmF6cXV4MTIzNA"}),
        (
            server(url="https://h/3fa85f64-5717-4562-b3fc-2c963f66afa6/mcp"),
            {"3fa85f64-5717-4562-b3fc-2c963f66afa6"},
        ),
        (server(url="https://h.example.com:8443/api/v2/model-context-protocol-2026-07"), set[str]()),
        (server(command=["run", "--api-key", "a", "--token=b", "-v", "c"]), {"a", "b"}),
        (server(command=["run", "--header", "Authorization: Bearer d"]), {"Bearer d", "d"}),
        (server(command=["run", "-e", "DB_PASSWORD=e"]), {"e"}),
        (server(command=["sh", "-c", "run --api-key g -v --auth-token  h --key --quiet"]), {"g", "h"}),
        (server(command=["run", "postgresql://u:f@h/db"]), {"f"}),
        (server(command=["run", "--keyboard", "us", "--author=ada", "--key", "--verbose"]), set[str]()),
        ({"mcp": {"servers": {"--key": {"command": ["run"]}}}}, set[str]()),
        ({"store": "postgresql://u:p%40x@h/db"}, {"p%40x", "p@x"}),
        ({"store": "postgresql://u:p@x@h/db"}, {"p@x", "p"}),
        ({"store": "postgresql://u@h/db"}, set[str]()),
        ({"store": "postgresql://u:@h/db"}, set[str]()),
        ({"store": "postgresql://h/db?user=u&password=p%40x&sslmode=require"}, {"p%40x", "p@x"}),
        ({"store": "postgresql://h/db?sslpassword=s&passfile=/a/b&sslkey=/c"}, {"s"}),
        ({"store": "mail a@b then x://u:p@h"}, {"p"}),
        ({"traces": {"headers": {"x-key": "k"}, "service_name": "shop"}}, {"k"}),
        ({"traces": {"endpoint": "http://t@h:4318/v1/traces?key=q"}}, {"t", "q"}),
        ({"traces": "http://h"}, set[str]()),
        (
            {"search": {"url": "http://t@h/s/Zm9vYmFyYmF6cXV4MTIzNA?key=q"}},
            {"t", "Zm9vYmFyYmF6cXV4MTIzNA", "q"},
        ),
        (
            {"openapi": {"a": {"document": "http://u:p@h/?key=q", "base_url": "http://h/?token=r"}}},
            {"p", "q", "r"},
        ),
        ({"openapi": {"document": {"document": "api/v2.yaml"}}}, set[str]()),
        ({"store": "sqlite:///a.db", "search": {"url": "http://h:80/x"}}, set[str]()),
        ({"contexts": {"env": {"description": "x"}}}, set[str]()),
        ({"mcp": {"servers": {"env": {"cwd": "x"}}}}, set[str]()),
    ],
)
def test_known_settings_and_passwords_are_secret(document: dict[str, Any], secrets: set[str]) -> None:
    assert find_secrets(document) == secrets


@pytest.mark.requirement("I2")
def test_environment_values_are_secret_unless_printable() -> None:
    taken = [
        (("store",), "a"),
        (("contexts", "x", "description"), "b"),
        (("server", "host"), "0.0.0.0"),
        (("log", "level"), "info"),
    ]
    assert find_secrets({}, taken) == {"a", "b"}


@pytest.mark.requirement("I2")
def test_references_in_commands_and_addresses_are_gathered() -> None:
    text = """
mcp:
  servers:
    a: {transport: stdio, command: [run, "${ONE}", "x=${TWO}"], env: {A: "${THREE}"}, cwd: "${FOUR}"}
    b: {transport: http, url: "https://h/mcp?q=${FIVE}", headers: {X: "${SIX}"}}
"""
    env = {name: f"value-of-{name}" for name in ("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX")}
    document = parse(text, "toolcrib.yaml", env)
    assert set(env.values()) <= document.secret_texts
    assert not [value for value in env.values() if value in export(document.raw)]
    assert not [value for value in env.values() if value in repr(replace(document, raw={}).mcp)]


@pytest.mark.requirement("I2")
@pytest.mark.parametrize(
    "document, shown",
    [
        ({"auth": {"admin_key": "k"}}, {"auth": {"admin_key": "***"}}),
        ({"auth": {"admin_key": ""}}, {"auth": {"admin_key": ""}}),
        ({"auth": {"admin_key": "${KEY}"}}, {"auth": {"admin_key": "${KEY}"}}),
        ({"auth": {"admin_key": "${KEY:-}"}}, {"auth": {"admin_key": "${KEY:-}"}}),
        ({"auth": {"admin_key": "${KEY:-k}"}}, {"auth": {"admin_key": "${KEY:-***}"}}),
        ({"auth": {"admin_key": "k${KEY}"}}, {"auth": {"admin_key": "***"}}),
        ({"auth": {"admin_key": "$${KEY}"}}, {"auth": {"admin_key": "***"}}),
        (server(headers={"A": "Bearer ${T}"}), server(headers={"A": "Bearer ${T}"})),
        (server(headers={"A": "Bearer t"}), server(headers={"A": "***"})),
        (server(env={"A": "${T}"}, cwd="x"), server(env={"A": "${T}"}, cwd="x")),
        (server(url="https://t@h/a?k=v&w=${W}"), server(url="https://***@h/a?k=***&w=${W}")),
        (server(url="https://${T}@h/?k=${K:-v}"), server(url="https://${T}@h/?k=${K:-***}")),
        (server(url="https://h/s/Zm9vYmFyYmF6cXV4MTIzNA/mcp"), server(url="https://h/s/***/mcp")),
        (server(url="https://h/${KEY}/mcp"), server(url="https://h/${KEY}/mcp")),
        (
            server(command=["run", "--token", "t", "--key=k", "x"]),
            server(command=["run", "--token", "***", "--key=***", "x"]),
        ),
        (
            server(command=["run", "--token", "${T}", "A_KEY=${K}"]),
            server(command=["run", "--token", "${T}", "A_KEY=${K}"]),
        ),
        ({"store": "postgresql://u:p@h/db"}, {"store": "postgresql://u:***@h/db"}),
        ({"store": "postgresql://u:${P}@h/db"}, {"store": "postgresql://u:${P}@h/db"}),
        ({"store": "postgresql://u:${P:-a/b}@h/db"}, {"store": "postgresql://u:${P:-***}@h/db"}),
        ({"store": "${DB:-postgresql://u:p@h/db}"}, {"store": "${DB:-postgresql://u:***@h/db}"}),
        ({"store": "postgresql://h/d?password=${P}&x=1"}, {"store": "postgresql://h/d?password=${P}&x=1"}),
        ({"store": "${DB:-postgresql://h/d?password=p}"}, {"store": "${DB:-postgresql://h/d?password=***}"}),
        ({"search": {"url": "http://h/?key=k"}}, {"search": {"url": "http://h/?key=***"}}),
        ({"store": "${DB}", "functions": ["a.b"]}, {"store": "${DB}", "functions": ["a.b"]}),
    ],
)
def test_secrets_are_replaced_by_references(document: dict[str, Any], shown: dict[str, Any]) -> None:
    assert mask(document) == shown


@pytest.mark.requirement("I8")
@pytest.mark.parametrize(
    "settings, kept",
    [
        ({"command": ["npx", "srv", "ghp_x"]}, {"program": "npx", "arguments": 2}),
        ({"command": ["/opt/bin/run", "-p", "hunter2"]}, {"program": "run", "arguments": 2}),
        ({"command": ["C:\\bin\\run.exe", "-H", "X-Custom: s"]}, {"program": "run.exe", "arguments": 2}),
        ({"command": ["run --token s3cr3t"]}, {"program": "run", "arguments": 0}),
        ({"command": []}, {}),
        ({"url": "https://u:p@h.example:8443/secret-path/mcp?k=v#f"}, {"url": "https://h.example:8443"}),
        ({"url": "http://[::1]:80/"}, {"url": "http://[::1]:80"}),
        ({"url": "https://h:x/"}, {"url": "***"}),
        ({"env": {"B": "s", "A": "s"}, "cwd": "/s"}, {"env": ["A", "B"]}),
        ({"headers": {"Authorization": "s"}}, {"headers": ["Authorization"]}),
        ({"transport": "http", "pin": "off", "tools": ["a"]}, {"transport": "http", "pin": "off"}),
    ],
)
def test_no_value_of_a_server_is_audited(settings: dict[str, Any], kept: dict[str, Any]) -> None:
    assert audited_server(settings) == kept


@pytest.mark.parametrize(
    "text", ["token" * 100_000, "a" * 500_000, "/" + "?&" * 200_000, "://" * 150_000, "?token" * 9_000]
)
@pytest.mark.slow
def test_long_texts_are_looked_through_once(text: str) -> None:
    """Looked at again from every place, one of these would take hours."""
    for document in (server(url=text), server(command=[text]), {"store": text}):
        assert find_secrets(document) is not None
        assert mask(document) is not None
