"""Which values are secret, and how they are covered."""

from typing import Any

import pytest

from toolcrib.config.secrets import gather, mask


def server(**settings: Any) -> dict[str, Any]:
    return {"mcp": {"servers": {"s": settings}}}


@pytest.mark.requirement("I2")
@pytest.mark.parametrize(
    "document, secrets",
    [
        ({"auth": {"admin_key": "k"}}, {"k"}),
        ({"auth": {"admin_key": ""}}, set[str]()),
        (server(headers={"Authorization": "Bearer t"}), {"Bearer t"}),
        (server(env={"TOKEN": "t", "DEBUG": 1}), {"t"}),
        (server(url="http://u:p@h/", command=["run"]), {"p"}),
        ({"store": "postgresql://u:p%40x@h/db"}, {"p%40x", "p@x"}),
        ({"store": "postgresql://u:p@x@h/db"}, {"p@x", "p"}),
        ({"store": "postgresql://u@h/db"}, set[str]()),
        ({"store": "sqlite:///a.db", "search": {"url": "http://h:80/x"}}, set[str]()),
        ({"contexts": {"env": {"description": "x"}}}, set[str]()),
        ({"mcp": {"servers": {"env": {"cwd": "x"}}}}, set[str]()),
    ],
)
def test_known_settings_and_passwords_are_secret(document: dict[str, Any], secrets: set[str]) -> None:
    assert gather(document) == secrets


@pytest.mark.requirement("I2")
def test_what_the_environment_gave_is_secret_but_for_what_is_printed_on_purpose() -> None:
    taken = [
        (("store",), "a"),
        (("contexts", "x", "description"), "b"),
        (("server", "host"), "0.0.0.0"),
        (("log", "level"), "info"),
    ]
    assert gather({}, taken) == {"a", "b"}


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
        ({"store": "postgresql://u:p@h/db"}, {"store": "postgresql://u:***@h/db"}),
        ({"store": "postgresql://u:${P}@h/db"}, {"store": "postgresql://u:${P}@h/db"}),
        ({"store": "postgresql://u:${P:-a/b}@h/db"}, {"store": "postgresql://u:${P:-***}@h/db"}),
        ({"store": "${DB:-postgresql://u:p@h/db}"}, {"store": "${DB:-postgresql://u:***@h/db}"}),
        ({"store": "${DB}", "functions": ["a.b"]}, {"store": "${DB}", "functions": ["a.b"]}),
    ],
)
def test_only_references_are_left_of_secrets(document: dict[str, Any], shown: dict[str, Any]) -> None:
    assert mask(document) == shown
