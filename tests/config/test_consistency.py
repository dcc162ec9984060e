"""Settings that must fit together, and what may not be reachable from elsewhere."""

import pytest

from tests.config.faulty import faults
from tests.texts import matches
from toolcrib.config import ConfigError, default_document, parse, with_bind_address
from toolcrib.config.checks import is_loopback

LONG = "0123456789-a-key-for-tests-alone"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "localhost", "::1", "[::1]"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "example.com", "localhost.example.com", "127.1", ""]
)
def test_all_else_is_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "auth, path",
    [
        ("mode: trust_header", "auth.mode"),
        ("anonymous: {context: default}", "auth.anonymous"),
        ("admin_key: a-key-for-loopback", "auth.admin_key"),
    ],
)
@pytest.mark.check(17)
def test_open_gateway_needs_loopback_address(auth: str, path: str) -> None:
    (fault,) = faults(f"server: {{host: 0.0.0.0}}\nauth:\n  {auth}\n")
    assert fault.startswith(f"toolcrib.yaml:3 {path}: ")
    document = parse(f"server: {{host: '::1'}}\nauth:\n  {auth}\n", "toolcrib.yaml", {})
    assert with_bind_address(document, host="localhost", port=0).server.port == 0
    with pytest.raises(ConfigError) as raised:
        with_bind_address(document, host="192.168.0.1")
    assert matches("config", f"open gateway needs loopback address: {path}", str(raised.value))


@pytest.mark.check(17)
def test_a_long_admin_key_may_be_used_from_elsewhere() -> None:
    document = parse(f"server: {{host: 0.0.0.0}}\nauth: {{admin_key: {LONG}}}\n", "toolcrib.yaml", {})
    assert document.auth.admin_key == LONG


@pytest.mark.check(17)
def test_the_admin_key_of_the_environment_is_held_to_the_same() -> None:
    (fault,) = faults("server: {host: 0.0.0.0}\n", {"TOOLCRIB_ADMIN_KEY": "short"})
    assert fault.startswith("toolcrib.yaml auth.admin_key: is too short")
    assert "$TOOLCRIB_ADMIN_KEY needs 32 characters" in fault


def test_listening_elsewhere_keeps_the_rest() -> None:
    document = default_document({})
    moved = with_bind_address(document, host="0.0.0.0", port=7000)
    assert (moved.server.host, moved.server.port) == ("0.0.0.0", 7000)
    assert moved.contexts == document.contexts
    assert with_bind_address(document) == document


@pytest.mark.requirement("I3")
def test_traces_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "traces:\n  endpoint: http://127.0.0.1:4318\n"
    assert parse(text, "toolcrib.yaml", {}).traces.endpoint == "http://127.0.0.1:4318"
    monkeypatch.setattr("toolcrib.observe.installed", lambda: False)
    (fault,) = faults(text)
    assert fault.startswith(
        "toolcrib.yaml:2 traces.endpoint: needs a package that is not installed: pip install"
    )
    assert parse("traces: {sample: 0.5}", "toolcrib.yaml", {}).traces.sample == 0.5


def test_an_anonymous_context_must_exist() -> None:
    (fault,) = faults("auth: {anonymous: {context: open}}\n")
    assert fault.startswith(
        "toolcrib.yaml:1 auth.anonymous.context: names a context that is not defined under contexts"
    )
    document = parse("auth: {anonymous: {context: open}}\ncontexts: {open: {}}\n", "toolcrib.yaml", {})
    assert document.auth.anonymous is not None
    assert document.auth.anonymous.context == "open"


def test_a_broken_context_still_exists() -> None:
    (fault,) = faults("auth: {anonymous: {context: open}}\ncontexts: {open: {max_tools: 0}}\n")
    assert "max_tools" in fault


@pytest.mark.requirement("F4")
def test_absent_tools_are_all_and_an_empty_list_is_none() -> None:
    document = parse("contexts: {all: {}, none: {tools: []}, some: {tools: ['*']}}\n", "toolcrib.yaml", {})
    assert document.contexts["all"].tools is None
    assert document.contexts["none"].tools == ()
    assert document.contexts["some"].tools == ("*",)
    assert document.contexts["default"].tools is None


@pytest.mark.parametrize(
    "setting", ["style: qualified", "style: qualified, provider: rest", "style: safe, provider: mcp"]
)
def test_qualified_names_are_fine_where_colons_are(setting: str) -> None:
    assert parse(f"contexts: {{a: {{{setting}}}}}\n", "toolcrib.yaml", {}).contexts["a"].style


def test_qualified_names_are_refused_for_providers() -> None:
    (fault,) = faults("contexts: {a: {style: qualified, provider: mcp}}\n")
    assert fault.startswith("toolcrib.yaml:1 contexts.a.style: works with REST only")


@pytest.mark.parametrize(
    "override",
    [
        "category: mutation, cache_ttl: 0",
        "category: query, cache_ttl: 60",
        "cache_ttl: 60",
        "expose_as: get_card, aliases: ['cards:old']",
        "deprecated: {since: '1.0', removal_date: 2027-01-31}",
    ],
)
def test_overrides_that_fit_together(override: str) -> None:
    assert "a:b" in parse(f"overrides: {{'a:b': {{{override}}}}}\n", "toolcrib.yaml", {}).overrides


def test_unserved_setting_warns_with_line() -> None:
    text = """\
contexts:
  default: {provider: anthropic, urgent: true, min_energy: 5}
energy: {start: 50}
openapi:
  pets: {document: pets.yaml}
"""
    later = "is valid, but not implemented yet"
    assert [str(warning) for warning in parse(text, "toolcrib.yaml", {}).warnings] == [
        f"toolcrib.yaml:4 openapi: {later}",
    ]
    assert default_document({}).warnings == ()
