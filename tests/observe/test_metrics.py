"""The names are the ones users build on, the numbers add up, and no request can add a label."""

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from tests.observe.samples import a_failure, a_problem, an_entry
from toolcrib.interfaces import SourceState
from toolcrib.model import Result
from toolcrib.observe import CallRecorder, Metrics
from toolcrib.testing import a_call, a_caller, a_tool
from toolcrib.version import VERSION

pytestmark = pytest.mark.requirement("I3")

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: bytes) -> Samples:
    """Every sample, as Prometheus itself would read it."""
    families = text_string_to_metric_families(text.decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset((name.rstrip("_"), value) for name, value in labels.items())


@pytest.mark.requirement("E14")
def test_every_call_is_counted_once_by_outcome() -> None:
    metrics = Metrics()
    tool = a_tool("a:b", category="query")
    call = a_call(tool)
    metrics.take(
        [
            an_entry(call),
            an_entry(call),
            an_entry(call, problem=a_problem("TIMEOUT"), seconds=5.0),
            an_entry(call, problem=a_problem("OUTCOME_UNKNOWN"), seconds=5.0),
            an_entry(call, problem=a_problem("SOURCE_DOWN")),
            an_entry(call, problem=a_problem("RATE_LIMITED")),
            an_entry(call, problem=a_problem("INVALID_ARGUMENTS")),
        ]
    )
    found = samples(metrics.render({}))
    calls = {labels: value for (name, labels), value in found.items() if name == "toolcrib_tool_calls_total"}
    plain = {"tool": "a:b", "category": "query"}
    assert calls == {
        frozenset((plain | {"status": "success", "class": "none"}).items()): 2,
        frozenset((plain | {"status": "timeout", "class": "system"}).items()): 2,
        frozenset((plain | {"status": "error", "class": "system"}).items()): 1,
        frozenset((plain | {"status": "error", "class": "business"}).items()): 1,
        frozenset((plain | {"status": "error", "class": "validation"}).items()): 1,
    }
    assert found[key("toolcrib_tool_errors_total", tool="a:b", class_="system")] == 3
    assert found[key("toolcrib_tool_errors_total", tool="a:b", class_="business")] == 1
    assert found[key("toolcrib_tool_errors_total", tool="a:b", class_="validation")] == 1


@pytest.mark.requirement("E14")
def test_duration_is_a_histogram() -> None:
    metrics = Metrics()
    call = a_call(a_tool("a:b"))
    metrics.take([an_entry(call, seconds=seconds) for seconds in (0.0005, 0.001, 0.3, 31.0)])
    found = samples(metrics.render({}))
    assert found[key("toolcrib_tool_seconds_bucket", tool="a:b", le="0.001")] == 2
    assert found[key("toolcrib_tool_seconds_bucket", tool="a:b", le="0.25")] == 2
    assert found[key("toolcrib_tool_seconds_bucket", tool="a:b", le="0.5")] == 3
    assert found[key("toolcrib_tool_seconds_bucket", tool="a:b", le="30.0")] == 3
    assert found[key("toolcrib_tool_seconds_bucket", tool="a:b", le="+Inf")] == 4
    assert found[key("toolcrib_tool_seconds_count", tool="a:b")] == 4
    assert found[key("toolcrib_tool_seconds_sum", tool="a:b")] == pytest.approx(31.3015)


@pytest.mark.requirement("E14")
def test_hits_and_misses_are_counted_for_cacheable_tools() -> None:
    metrics = Metrics()
    cacheable = a_call(a_tool("a:query", category="query", cache_ttl=60.0))
    metrics.take([an_entry(cacheable, cached=True)] * 3 + [an_entry(cacheable)] * 2)
    metrics.take([an_entry(cacheable, problem=a_problem("SOURCE_DOWN"))])
    metrics.take(
        [an_entry(cacheable, problem=a_problem("INVALID_ARGUMENTS"))]
    )  # never got as far as the cache
    metrics.take([an_entry(a_call(a_tool("a:plain"))), an_entry(a_call(a_tool("a:change", cache_ttl=60.0)))])
    found = samples(metrics.render({}))
    assert {name: value for name, value in found.items() if name[0] == "toolcrib_cache_total"} == {
        key("toolcrib_cache_total", tool="a:query", outcome="hit"): 3,
        key("toolcrib_cache_total", tool="a:query", outcome="miss"): 3,
    }


def test_mcp_tools_are_labelled_with_their_own_names() -> None:
    metrics = Metrics(prefix="ai_agent")
    atis = a_call(a_tool("aviation_atis:get_atis", family="mcp"))
    metrics.take(
        [an_entry(atis), an_entry(atis, problem=a_problem("TIMEOUT")), an_entry(a_call(a_tool("a:b")))]
    )
    found = samples(metrics.render({}))
    labels = {"server": "aviation_atis", "tool": "get_atis"}
    assert found[key("ai_agent_mcp_tool_calls_total", **labels, status="success")] == 1
    assert found[key("ai_agent_mcp_tool_calls_total", **labels, status="timeout")] == 1
    assert found[key("ai_agent_mcp_tool_latency_seconds_count", **labels)] == 2
    assert {dict(labels)["server"] for (name, labels) in found if "_mcp_" in name} == {"aviation_atis"}
    assert found[key("ai_agent_tool_seconds_count", tool="aviation_atis:get_atis")] == 2


FAMILIES = {
    "toolcrib_info": "gauge",
    "toolcrib_tool_calls_total": "counter",
    "toolcrib_tool_errors_total": "counter",
    "toolcrib_tool_seconds": "histogram",
    "toolcrib_cache_total": "counter",
    "toolcrib_tool_late_total": "counter",
    "toolcrib_tool_deprecated_total": "counter",
    "toolcrib_mcp_tool_calls_total": "counter",
    "toolcrib_mcp_tool_latency_seconds": "histogram",
    "toolcrib_refused_total": "counter",
    "toolcrib_dropped_total": "counter",
    "toolcrib_parked_calls": "gauge",
    "toolcrib_tools": "gauge",
    "toolcrib_source_up": "gauge",
    "toolcrib_mcp_server_up": "gauge",
    "toolcrib_mcp_server_restarts_total": "counter",
    "toolcrib_mcp_server_dropped_messages_total": "counter",
    "toolcrib_source_restarts_total": "counter",
}


def test_metric_names() -> None:
    states = [
        SourceState(id="a", state="up", tools=3, restarts=2),
        SourceState(id="b", state="crash_loop"),
    ]
    metrics = Metrics(sources=lambda: states)
    text = metrics.render({"journal": 0, "log": 5})
    families = {
        line.split()[2]: line.split()[3] for line in text.decode().splitlines() if line.startswith("# TYPE")
    }
    assert {name: kind for name, kind in families.items() if name.startswith("toolcrib_")} == FAMILIES
    assert {"process_cpu_seconds_total", "python_info", "python_gc_collections_total"} <= families.keys()
    found = samples(text)
    assert found[key("toolcrib_info", version=VERSION)] == 1
    assert found[key("toolcrib_dropped_total", sink="log")] == 5
    assert (
        found[key("toolcrib_tools", source="a")],
        found[key("toolcrib_source_restarts_total", source="a")],
    ) == (3, 2)
    assert (found[key("toolcrib_source_up", source="a")], found[key("toolcrib_source_up", source="b")]) == (
        1,
        0,
    )


@pytest.mark.requirement("I3")
def test_servers_have_additional_metrics() -> None:
    states = [
        SourceState(id="files", state="up", family="mcp", restarts=4),
        SourceState(id="web", state="down", family="mcp"),
        SourceState(id="local", state="up"),
    ]
    found = samples(Metrics("ai_agent", sources=lambda: states).render({}))
    assert found[key("ai_agent_mcp_server_up", server="files")] == 1
    assert found[key("ai_agent_mcp_server_up", server="web")] == 0
    assert found[key("ai_agent_mcp_server_restarts_total", server="files")] == 4
    assert key("ai_agent_mcp_server_up", server="local") not in found


def test_tools_of_removed_servers_have_no_metrics() -> None:
    states = [SourceState(id="web", state="down", family="mcp")]
    metrics = Metrics(sources=lambda: states, limit=2)
    metrics.take([an_entry(a_call(a_tool("web:a", family="mcp"))), an_entry(a_call(a_tool("local:b")))])
    assert key("toolcrib_tool_seconds_count", tool="web:a") in samples(metrics.render({}))
    states.clear()
    # New tools fit also without scrapes.
    metrics.take([an_entry(a_call(a_tool("local:c")))])
    found = samples(metrics.render({}))
    assert key("toolcrib_tool_seconds_count", tool="web:a") not in found
    assert key("toolcrib_tool_seconds_count", tool="local:b") in found
    assert key("toolcrib_tool_seconds_count", tool="local:c") in found


def test_numbers_stay_current_between_scrapes() -> None:
    metrics = Metrics()
    for expected in (1, 2, 3):
        metrics.take([an_entry(a_call(a_tool("a:b")))])
        assert samples(metrics.render({}))[key("toolcrib_tool_seconds_count", tool="a:b")] == expected
        assert metrics.render({}).count(b"tool_seconds_count{") == 1


def test_changed_category_starts_a_new_series() -> None:
    metrics = Metrics()
    metrics.take(
        [an_entry(a_call(a_tool("a:b", category=category))) for category in ("query", "mutation", "query")]
    )
    found = samples(metrics.render({}))
    labels = {"tool": "a:b", "status": "success", "class_": "none"}
    assert found[key("toolcrib_tool_calls_total", **labels, category="query")] == 2
    assert found[key("toolcrib_tool_calls_total", **labels, category="mutation")] == 1


def test_odd_names_are_escaped() -> None:
    metrics = Metrics()
    name = 'a:"quoted"\\\nname'
    metrics.take([an_entry(a_call(a_tool(name)))])
    assert samples(metrics.render({}))[key("toolcrib_tool_seconds_count", tool=name)] == 1


@pytest.mark.check(44)
def test_ten_thousand_unknown_tools_and_users_add_no_label() -> None:
    journal = CallRecorder(Metrics())
    call = a_call(a_tool("a:b"))
    journal.record(call, Result(), 0.001)
    journal.refused("TOOL_NOT_FOUND")
    journal.refused("made-up")
    before = samples(journal.metrics())
    for number in range(10_000):
        journal.refused("TOOL_NOT_FOUND")
        journal.refused(f"made-up {number}")
        stranger = a_caller(id=f"user {number}", user=f"user {number}", context=f"context {number}")
        journal.record(a_call(call.tool, id=f"{number}", caller=stranger), Result(), 0.001)
    after = samples(journal.metrics())
    assert after.keys() == before.keys()
    assert after[key("toolcrib_refused_total", code="TOOL_NOT_FOUND")] == 10_001
    assert after[key("toolcrib_refused_total", code="EXECUTION_ERROR")] == 10_001
    assert after[key("toolcrib_tool_seconds_count", tool="a:b")] == 10_001


def test_changing_catalog_does_not_leak_metrics() -> None:
    metrics = Metrics(limit=10)
    metrics.take([an_entry(a_call(a_tool(f"a:{number}"))) for number in range(1_000)])
    found = samples(metrics.render({}))
    assert found[key("toolcrib_tool_seconds_count", tool="other")] == 990
    assert len([name for name, _ in found if name == "toolcrib_tool_seconds_count"]) == 11


def test_scrape_includes_the_latest_call() -> None:
    journal = CallRecorder(Metrics(), limit=2)
    for _ in range(3):
        journal.record(a_call(a_tool("a:b")), a_failure(), 0.001)
    found = samples(journal.metrics())
    assert found[key("toolcrib_tool_errors_total", tool="a:b", class_="business")] == 2
    assert found[key("toolcrib_dropped_total", sink="journal")] == 1


def test_foreign_registry_is_unchanged() -> None:
    before = {metric.name for metric in REGISTRY.collect()}
    Metrics()
    Metrics()
    assert {metric.name for metric in REGISTRY.collect()} == before


@pytest.mark.parametrize("prefix", ["", "1a", "a-b", "a b", "a\n"])
def test_invalid_metric_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match=r"metrics\.prefix"):
        Metrics(prefix)
