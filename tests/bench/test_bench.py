"""The benchmark measures, compares and reports; its speed values are not judged here."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.__main__ import main
from bench.charts import echo_chart, gateway_chart
from bench.checkout_comparison import OTHER_CHECKOUT, THIS_CHECKOUT, comparisons
from bench.cores import Cores
from bench.gateways import versions
from bench.goals import GOALS, LIMITS, goal_results
from bench.load_generator import LoadResult
from bench.parts import PARTS
from bench.report import CASE_TITLES, SERVER_TITLES, markdown_report, server_title, terminal_report
from bench.requests import FIRST_ID, TEXT, Request, UnexpectedResponse, legacy_call, mcp_call, rest_call
from bench.results_files import replace_block, write_results
from bench.rounds import CaseResult, LoadPoint, Plan, Round, measure
from bench.run_results import RunResults
from bench.running_servers import Case, CaseId
from bench.server_process import ServerProcess

CASES: dict[CaseId, float] = {
    ("rest", "echo"): 4000,
    ("rest", "toolcrib"): 2000,
    ("rest", "toolcrib-10000"): 1900,
    ("mcp", "echo-mcp"): 2000,
    ("rest", "toolcrib-bare"): 2400,
    ("hinted", "toolcrib"): 300,
    ("hinted", "toolcrib-bare"): 400,
    ("mcp", "sdk"): 1000,
    ("mcp", "toolcrib"): 600,
    ("list", "echo-list"): 300,
    ("list", "toolcrib-10000"): 200,
    ("users", "toolcrib-crowd"): 2000,
    ("users", "toolcrib-alone"): 2200,
    ("users-cold", "toolcrib-crowd-cold"): 250,
    ("users-cold", "toolcrib-alone-cold"): 500,
    ("web", "direct"): 8000,
    ("web", "toolcrib-web"): 2000,
    ("web", "hub"): 100,
    ("web", "fastmcp-tuned"): 50,
    ("web", "fastmcp-proxy"): 2,
    ("pipe", "toolcrib-pipe"): 1000,
    ("pipe", "node-proxy"): 500,
    ("pipe", "python-proxy"): 250,
    ("tools", "direct-1000"): 30,
    ("tools", "toolcrib-web-1000"): 20,
}
SVG = {"svg": "http://www.w3.org/2000/svg"}


def server_process(name: str, port: int = 1) -> ServerProcess:
    return ServerProcess(name=name, port=port, pids=(), start_seconds=0.5, idle_megabytes=80.5)


def parsed(echo_chart: str) -> ET.Element:
    return ET.fromstring(echo_chart)  # noqa: S314 - drawn by the code under test


def run_results(connections: int = 16) -> RunResults:
    def rounds(rate: float) -> tuple[Round, ...]:
        return tuple(Round(rate=rate * n, cpu=1e6 / rate, p50=1.0, p99=2.0, failures=0) for n in (1, 2, 9))

    measured: dict[LoadPoint, CaseResult] = {
        (key, connections): CaseResult(rounds(rate)) for key, rate in CASES.items()
    }
    return RunResults(
        plan=Plan(rounds=3, seconds=1.0, connections=(connections,)),
        load="wrk",
        cores=2,
        pinned=True,
        notes=("FastMCP's server is left out",),
        versions={"mcp-hub": "4.2.1"},
        processes={name: server_process(name) for _, name in CASES},
        measured=measured,
    )


def test_checkouts_are_compared_per_round() -> None:
    def rounds(*cpu: float | None) -> CaseResult:
        return CaseResult(tuple(Round(rate=1.0, cpu=one, p50=1.0, p99=1.0, failures=0) for one in cpu))

    measured: dict[LoadPoint, CaseResult] = {
        (("pipe", f"{THIS_CHECKOUT}, stdio"), 16): rounds(110.0, 90.0, None, 300.0),
        (("pipe", f"{OTHER_CHECKOUT}, stdio"), 16): rounds(100.0, 100.0, 50.0, 100.0),
    }
    (found,) = comparisons(measured)
    assert (found.kind, found.connections, found.ratios) == ("pipe", 16, (1.1, 0.9, 3.0))
    assert "1.100" in found.row
    assert "0.900 to 3.000" in found.row


@pytest.mark.slow
def test_short_run_compares_toolcrib_with_echo_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "--only rest --own-client --rounds 1 --seconds 0.1 --connections 2 --into"
    assert main([*arguments.split(), str(tmp_path)]) == 0
    found = json.loads((tmp_path / "results.json").read_text())
    ratio = found["goals"][0]
    assert ratio["connections"] == 2
    assert ratio["value"] > 0
    assert {(case["case"], case["server"]) for case in found["cases"]} == {
        ("rest", "echo"),
        ("rest", "toolcrib"),
    }
    assert all(case["callsPerSecond"] > 0 and case["failures"] == 0 for case in found["cases"])
    assert all(server["startSeconds"] > 0 for server in found["servers"].values())
    assert parsed((tmp_path / "bench.svg").read_text()).tag.endswith("svg")
    assert "REST execute / a bare ASGI echo" in capsys.readouterr().out


def test_goal_ratios_are_medians_of_rounds() -> None:
    found = {(each.name, each.metric): (each.value, each.reached) for each in run_results().goal_results}
    assert found["REST execute / a bare ASGI echo", "throughput"] == (0.5, True)
    contract = "REST execute, hints in the result / a call without the tool contract", "CPU"
    assert found[contract] == (pytest.approx(1.2), True)
    assert found["MCP tools/call / the bare mcp SDK", "throughput"] == (0.6, False)
    assert found["filtered list of 10,000 tools / sending the same bytes", "time"] == (1.5, True)
    crowd = "100,000 users and 1,000 apps / the same for the user alone"
    assert found[f"a user's tool list, {crowd}", "time"] == (pytest.approx(1.1), True)
    assert found[f"a user's uncached tool list, {crowd}", "time"] == (2.0, False)
    assert found["call to a stdio server / mcp-proxy of Node", "throughput"] == (2.0, False)
    assert found["call to a stdio server / mcp-proxy of Python", "throughput"] == (4.0, None)
    assert found["call to an HTTP server / FastMCP's proxy, tuned", "throughput"] == (40.0, True)
    assert found["call to an HTTP server / the server itself", "CPU"] == (4.0, True)
    assert found["call to a stdio server / the HTTP server itself", "CPU"] == (8.0, False)
    assert found["tools/list of 1,000 tools / the server itself", "time"] == (1.5, True)
    assert found["Toolcrib in front of a stdio server", "idle memory"] == (80.5, True)
    assert len(found) == len(GOALS) + len(LIMITS) - 1, "FastMCP's server is not among the cases"


def test_load_goal_is_not_judged_with_one_connection() -> None:
    alone = {each.name: each for each in run_results(1).goal_results}
    assert alone["call to a stdio server / mcp-proxy of Node"].reached is None
    assert alone["REST execute / a bare ASGI echo"].reached


def test_run_without_cases_has_no_goal_results() -> None:
    assert not list(goal_results({}, {}))


def test_ratio_skips_rounds_without_a_response() -> None:
    def rounds(*rates: float) -> CaseResult:
        return CaseResult(tuple(Round(rate=rate, cpu=None, p50=1, p99=1, failures=0) for rate in rates))

    measured: dict[LoadPoint, CaseResult] = {
        (("web", "toolcrib-web"), 16): rounds(90.0, 100.0),
        (("web", "fastmcp-proxy"), 16): rounds(0.0, 10.0),
    }
    assert [each.value for each in goal_results(measured, {})] == [10.0]


def test_json_contains_no_paths_or_hosts() -> None:
    text = json.dumps(run_results().as_json())
    assert not re.search(r"/(home|root|usr|tmp)|localhost|127\.0\.0\.1", text)


def test_tables_show_results() -> None:
    shown = terminal_report(run_results())
    assert "note: FastMCP's server is left out" in shown
    assert re.search(r"the bare mcp SDK +16 +throughput +0\.60 × +at least 0\.7 +missed", shown)
    assert re.search(r"no gateway +HTTP +16,000 +125 +– +1\.00 +80 +0\.50", shown)
    page = markdown_report(run_results())
    assert re.search(r"\| REST execute / a bare ASGI echo \| 16 \|.* 0\.50 × .*\| reached \|", page)
    assert "Compared with mcp-hub 4.2.1." in page


def test_every_goal_and_case_has_a_title() -> None:
    for goal in GOALS:
        for kind, server in (goal.ours, goal.other):
            assert kind in CASE_TITLES
            assert server_title(server)
    assert {limit.server for limit in LIMITS} <= SERVER_TITLES.keys()
    assert "1,000 tools" in server_title("hub-1000")


def test_chart_is_complete_and_has_alt_text() -> None:
    root = parsed(echo_chart(run_results()))
    assert len(root.findall(".//svg:rect[@class='crib']", SVG)) == 4
    assert len(root.findall(".//svg:line[@class='goal']", SVG)) == 3
    assert "REST execute, Toolcrib: 4,000 calls per second" in root.findtext("svg:desc", "", SVG)


def test_gateway_chart_shows_toolcrib_and_other_gateways() -> None:
    root = parsed(gateway_chart(run_results()))
    assert len(root.findall(".//svg:rect[@class='crib']", SVG)) == 2
    assert len(root.findall(".//svg:rect[@class='other']", SVG)) == 5
    notes = [each.text or "" for each in root.findall(".//svg:text[@class='note']", SVG)]
    assert notes[0].startswith("2.00 × ")
    edge = max(float(each.get("x1", "0")) for each in root.findall(".//svg:line[@class='goal']", SVG))
    assert edge <= 700, "a goal beyond the highest bar must be inside the chart"


def test_results_are_written_to_given_folder(tmp_path: Path) -> None:
    written = write_results(run_results(), tmp_path / "new")
    assert [path.name for path in written] == ["results.json", "bench.svg", "bench-gateways.svg"]


def test_only_the_marked_block_of_a_page_is_replaced() -> None:
    page = "# Speed\n<!-- bench:begin -->old<!-- bench:end -->\nMore.\n"
    assert replace_block(page, "new") == "# Speed\n<!-- bench:begin -->\n\nnew\n\n<!-- bench:end -->\nMore.\n"
    assert replace_block(replace_block(page, "newer"), "new") == replace_block(page, "new")
    assert replace_block("# Speed\n", "new") == "# Speed\n"


def test_rounds_alternate_and_count_successful_responses() -> None:
    ports: list[int] = []

    def run_load(port: int, _request: Request, connections: int, _seconds: float) -> LoadResult:
        ports.append(port)
        return LoadResult(calls=10, seconds=2.0, p50=1.0, p99=2.0, failures=2)

    cases: dict[CaseId, Case] = {
        ("rest", name): Case(server_process(name, port), rest_call())
        for port, name in enumerate(("echo", "toolcrib"))
    }
    found = measure(cases, run_load, Plan(rounds=2, seconds=1.0, connections=(1,)))
    assert ports == [0, 1, 0, 1, 1, 0], "warm-up, then one round forwards and one in reverse"
    one = found[("rest", "echo"), 1]
    assert (one.rate, one.cpu, one.failures) == (4.0, None, 4)


def test_case_limits_connections_and_extends_rounds() -> None:
    runs: list[tuple[int, float]] = []

    def run_load(_port: int, _request: Request, connections: int, seconds: float) -> LoadResult:
        runs.append((connections, seconds))
        return LoadResult(calls=0, seconds=seconds, p50=0.0, p99=0.0, failures=0)

    cases: dict[CaseId, Case] = {("web", "slow"): Case(server_process("slow"), rest_call(), 16, 3.0)}
    found = measure(cases, run_load, Plan(rounds=1, seconds=1.0, connections=(1, 16, 64)))
    assert runs == [(16, 1.0), (1, 3.0), (16, 3.0)]
    assert found[("web", "slow"), 16].rate == 0.0
    assert Plan(rounds=1, seconds=1, connections=(4, 8)).connection_counts(cases["web", "slow"]) == [4, 8]


def test_server_that_only_fails_aborts_the_run() -> None:
    def run_load(_port: int, _request: Request, _connections: int, _seconds: float) -> LoadResult:
        return LoadResult(calls=10, seconds=2.0, p50=1.0, p99=2.0, failures=10)

    cases: dict[CaseId, Case] = {("rest", "echo"): Case(server_process("echo"), rest_call())}
    with pytest.raises(UnexpectedResponse, match="echo returned no successful response"):
        measure(cases, run_load, Plan(rounds=1, seconds=1.0, connections=(1,)))


def test_arguments_are_about_two_hundred_bytes() -> None:
    assert 180 < len(json.dumps({"text": TEXT})) < 220
    assert mcp_call().with_key("k").encode(80).startswith(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:80\r\n")
    assert legacy_call().encode(80).count(FIRST_ID.encode()) == 1


def test_versions_are_those_of_the_lock_files() -> None:
    assert versions(["direct", "hub"]).keys() == {"mcp-hub"}
    assert all(re.fullmatch(r"[0-9]+\.[0-9.]+", each) for each in versions(SERVER_TITLES).values())


def test_parts_can_run_separately() -> None:
    assert list(PARTS) == [
        "rest",
        "mcp",
        "list",
        "lookup",
        "search",
        "contract",
        "users",
        "gateways",
        "tools",
        "hints",
    ]


def test_commands_are_pinned_if_there_are_two_cores() -> None:
    assert Cores(0, 1).for_load(["wrk"]) == ["taskset", "-c", "1", "wrk"]
    assert Cores(note="alone").for_server(["serve"]) == ["serve"]
