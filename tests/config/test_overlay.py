"""Run-time changes beside the operator's file."""

from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.config import ConfigError, Document, export, load, merge, parse
from toolcrib.config.yaml import text_values

KEYS = st.text("abc", min_size=1, max_size=2)
DOCUMENTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    KEYS | st.just("overrides"),
    st.recursive(
        st.integers() | st.text("xyz", max_size=3) | st.none() | st.lists(st.integers(), max_size=2),
        lambda inner: st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


def leaves(value: Any, where: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if not isinstance(value, dict) or not value:
        return {where: value}
    entries = cast("dict[str, Any]", value)
    return {at: leaf for key, inner in entries.items() for at, leaf in leaves(inner, (*where, key)).items()}


@given(DOCUMENTS, DOCUMENTS)
@pytest.mark.requirement("I7")
def test_the_file_wins_on_every_leaf(file: dict[str, Any], overlay: dict[str, Any]) -> None:
    merged = leaves(merge(file, overlay))
    for where, leaf in leaves(file).items():
        if leaf != {}:
            assert merged[where] == leaf


@given(DOCUMENTS, DOCUMENTS)
@pytest.mark.requirement("I7")
def test_nothing_comes_from_elsewhere_and_nothing_is_changed(
    file: dict[str, Any], overlay: dict[str, Any]
) -> None:
    before = (repr(file), repr(overlay))
    merged = leaves(merge(file, overlay))
    assert (repr(file), repr(overlay)) == before
    either = [*leaves(file).items(), *leaves(overlay).items()]
    assert all(item in either for item in merged.items())


@given(DOCUMENTS, DOCUMENTS)
@pytest.mark.requirement("I7")
def test_merging_twice_changes_nothing(file: dict[str, Any], overlay: dict[str, Any]) -> None:
    once = merge(file, overlay)
    assert repr(merge(once, overlay)) == repr(once)
    assert merge(file, {}) == file
    assert merge({}, overlay) == overlay


def test_lists_are_replaced_as_a_whole() -> None:
    assert merge(
        {"contexts": {"a": {"tools": ["x"]}}}, {"contexts": {"a": {"tools": ["y"], "style": "safe"}}}
    ) == {"contexts": {"a": {"tools": ["x"], "style": "safe"}}}


def test_tool_overrides_of_the_file_are_applied_last() -> None:
    file: dict[str, Any] = {"overrides": {"a:*": {"hidden": True}, "b": {}}, "contexts": {"f": {}}}
    overlay: dict[str, Any] = {"overrides": {"a:x": {"hidden": False}, "b": {}}, "contexts": {"o": {}}}
    merged = merge(file, overlay)
    assert list(merged["overrides"]) == ["a:x", "a:*", "b"]
    assert list(merged["contexts"]) == ["f", "o"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "toolcrib.yaml"
    path.write_text("contexts:\n  a: {tools: [x]}\noverrides: {'a:b': {category: query}}\n")
    return path


@pytest.mark.requirement("I7")
def test_run_time_changes_are_in_the_document_and_the_file_stays(file: Path) -> None:
    before = file.read_bytes()
    overlay: dict[str, Any] = {
        "contexts": {"a": {"tools": [], "max_tools": 3}, "b": {"tools": ["y"]}},
        "overrides": {"a:b": {"category": "mutation", "cache_ttl": 5}},
        "mcp": {"servers": {"s": {"transport": "http", "url": "http://127.0.0.1:1/"}}},
        "pins": {"s:x": "abc"},
    }
    document = load(file, env={}, overlay=overlay)
    assert document.contexts["a"].tools == ("x",)
    assert document.contexts["a"].max_tools == 3
    assert document.contexts["b"].tools == ("y",)
    assert document.overrides["a:b"].category == "query"
    assert document.overrides["a:b"].cache_ttl == 5
    assert document.mcp.servers["s"].url == "http://127.0.0.1:1/"
    assert document.pins == {"s:x": "abc"}
    assert document.source == file
    assert file.read_bytes() == before


@pytest.mark.requirement("I7")
def test_only_some_sections_change_at_run_time(file: Path) -> None:
    overlay = {"server": {"host": "0.0.0.0"}, "auth": {"mode": "trust_header"}, "mcp": {"enabled": False}}
    file.write_text("legacy: perhaps\n")
    with pytest.raises(ConfigError) as refused:
        load(file, env={}, overlay=overlay)
    assert str(refused.value).splitlines() == [
        "run-time overlay auth: cannot be changed at run time; change it in the config file",
        "run-time overlay mcp.enabled: cannot be changed at run time; change it in the config file",
        "run-time overlay server: cannot be changed at run time; change it in the config file",
        f"{file}:1 legacy: must be true or false",
    ]


@pytest.mark.requirement("I5")
def test_who_added_a_server_is_beside_the_settings(file: Path) -> None:
    server = {"transport": "http", "url": "http://127.0.0.1:1/"}
    overlay = {"mcp": {"servers": {"near": server}}, "url_givers": {"near": "operator"}}
    document = load(file, env={}, overlay=overlay)
    assert (document.added, document.url_givers) == ({"near"}, {"near": "operator"})
    assert "url_givers" not in document.raw
    assert load(file, env={}, overlay={"mcp": {"servers": {"near": server}}}).url_givers == {}
    with pytest.raises(ConfigError):
        load(file, env={}, overlay={**overlay, "url_givers": "operator"})
    with pytest.raises(ConfigError):
        parse("url_givers: {near: operator}", "toolcrib.yaml", {})


@pytest.mark.parametrize("overlay", [{"mcp": 5}, {"mcp": []}])
def test_an_overlay_of_the_wrong_shape_is_refused(overlay: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        load(None, env={}, overlay=overlay)
    assert matches("config", "an overlay of the wrong shape is refused", str(raised.value))


def test_overlay_faults_are_attributed_to_the_overlay(file: Path) -> None:
    overlay = {"contexts": {"a": {"max_tools": 0}, "b": {"tools": ["x", ""]}}}
    with pytest.raises(ConfigError) as refused:
        load(file, env={}, overlay=overlay)
    assert [str(fault).split(":")[0] for fault in refused.value.faults] == [
        "run-time overlay contexts.a.max_tools",
        "run-time overlay contexts.b.tools[1]",
    ]


def test_a_deep_overlay_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"contexts": deep}
    with pytest.raises(ConfigError) as raised:
        load(None, env={}, overlay=deep)
    assert matches("config", "a deep overlay is refused", str(raised.value))


@pytest.mark.requirement("I2", "I7")
def test_the_overlay_cannot_read_the_environment(file: Path) -> None:
    """Run-time changes come from callers, who may not see what the operator's environment holds."""
    overlay = {"contexts": {"b": {"description": "${HIDDEN}"}}}
    document = load(file, env={"HIDDEN": "hunter2"}, overlay=overlay)
    assert document.contexts["b"].description == "${HIDDEN}"
    again = parse(export(document.raw), "again.yaml", {"HIDDEN": "hunter2"})
    assert again.contexts["b"].description == "${HIDDEN}"


@pytest.mark.requirement("I2", "I7")
def test_an_export_shows_references_and_covers_other_secrets(file: Path) -> None:
    file.write_text("""\
auth: {admin_key: hunter2-and-7-dwarfs}
store: postgresql://u:${PASSWORD}@h/db
mcp:
  servers:
    s: {transport: http, url: 'http://h/', headers: {A: 'Bearer ${TOKEN}', B: hunter2}}
""")
    overlay = {"mcp": {"servers": {"t": {"transport": "stdio", "command": ["x"], "env": {"K": "hunter2"}}}}}
    document = load(file, env={"PASSWORD": "hunter2", "TOKEN": "hunter2"}, overlay=overlay)
    text = export(document.raw)
    assert "hunter2" not in text
    assert yaml.safe_load(text) == {
        "auth": {"admin_key": "***"},
        "store": "postgresql://u:${PASSWORD}@h/db",
        "mcp": {
            "servers": {
                "s": {
                    "transport": "http",
                    "url": "http://h/",
                    "headers": {"A": "Bearer ${TOKEN}", "B": "***"},
                },
                "t": {"transport": "stdio", "command": ["x"], "env": {"K": "***"}},
            }
        },
    }


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1) | st.sampled_from(
    [
        "on",
        "null",
        "1e5",
        "0o17",
        "2026-01-01",
        "12:30",
        "~",
        "${NAME}",
        "$${x",
        " lead",
        "tail ",
        "a: b",
        "- x",
        "#",
        "a\x85b",
        "a\u2028b",
        "a\nb",
    ]
)


def same(one: Document, other: Document) -> bool:
    return (one.contexts, one.overrides, one.secrets) == (other.contexts, other.overrides, other.secrets)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), WORDS), st.lists(WORDS, max_size=3))
@pytest.mark.requirement("I7")
def test_exported_config_loads_identically(descriptions: dict[str, str], tags: list[str]) -> None:
    overlay: dict[str, Any] = {
        "contexts": {
            name: {"description": text, "urgent": True, "min_energy": 2.5}
            for name, text in descriptions.items()
        },
        "overrides": {"a:*": {"tags": tags, "cache_ttl": 1e20}, "a:b": {"tags": tags, "category": None}},
    }
    document = load(None, env={}, overlay=overlay)
    assert list(text_values(document.raw)) or not (descriptions or tags)
    assert same(parse(export(document.raw), "again.yaml", {"NAME": "x"}), document)
    assert export(parse(export(document.raw), "again.yaml", {}).raw) == export(document.raw)


def test_shared_parts_are_written_out() -> None:
    tools = ["x"]
    text = export({"contexts": {"a": {"tools": tools}, "b": {"tools": tools}}})
    assert parse(text, "again.yaml", {}).contexts["b"].tools == ("x",)
