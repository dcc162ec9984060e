"""The bench measures and compares; how fast anything is stays out of here."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.__main__ import main
from bench.asking import TEXT, Ask, WrongAnswer, mcp_call, rest_call
from bench.cores import Cores
from bench.goals import GOALS, ratios
from bench.keeping import filled, keep
from bench.load import Driven
from bench.outcome import Outcome
from bench.picture import picture
from bench.process import Peer
from bench.report import markdown, terminal
from bench.rounds import Measured, Place, Plan, Round, measure
from bench.stage import Case, Key

CASES: dict[Key, float] = {
    ("rest", "echo"): 4000,
    ("rest", "toolcrib"): 2000,
    ("rest", "toolcrib-10000"): 1900,
    ("mcp", "sdk"): 1000,
    ("mcp", "toolcrib"): 600,
    ("list", "echo-list"): 300,
    ("list", "toolcrib-10000"): 200,
    ("function", "toolcrib-servers"): 2000,
    ("pipe", "toolcrib-servers"): 1600,
    ("web", "toolcrib-servers"): 1000,
}


def a_peer(name: str, port: int = 1) -> Peer:
    return Peer(name=name, port=port, pid=-1, start_seconds=0.5, idle_megabytes=None)


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - we have just drawn it


def an_outcome() -> Outcome:
    def rounds(rate: float) -> tuple[Round, ...]:
        return tuple(Round(rate=rate * n, cpu=1e6 / rate, p50=1.0, p99=2.0, failures=0) for n in (1, 2, 9))

    measured: dict[Place, Measured] = {(key, 16): Measured(rounds(rate)) for key, rate in CASES.items()}
    return Outcome(
        plan=Plan(rounds=3, seconds=1.0, connections=(16,)),
        load="wrk",
        cores=2,
        pinned=True,
        notes=("FastMCP is left out",),
        peers={name: a_peer(name) for _, name in CASES},
        measured=measured,
    )


def test_a_tiny_run_compares_toolcrib_with_the_bare_echo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--only rest --own-client --rounds 1 --seconds 0.1 --connections 2 --into"
    assert main([*words.split(), str(tmp_path)]) == 0
    found = json.loads((tmp_path / "results.json").read_text())
    (ratio,) = found["ratios"]
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


def test_ratios_are_medians_of_rounds_with_their_goals() -> None:
    found = {each.goal.name: each for each in an_outcome().ratios}
    rest, mcp = found["REST execute / a bare ASGI echo"], found["MCP tools/call / the bare mcp SDK"]
    assert (rest.value, rest.cpu, rest.reached) == (0.5, 2.0, True)
    assert (mcp.value, mcp.reached) == (0.6, False)
    listed = found["list of half of 10,000 tools / the cost of sending its bytes"]
    assert (listed.value, listed.cpu, listed.reached) == (1.5, 1.5, True)
    piped = found["REST execute over a server's pipe / that of a function"]
    assert (piped.value, piped.reached) == (0.8, None)
    assert len(found) == len(GOALS) - 1, "FastMCP was not there"


def test_a_run_of_nothing_has_no_ratios() -> None:
    assert not list(ratios({}))


def test_the_json_names_no_machine() -> None:
    text = json.dumps(an_outcome().as_json())
    assert not re.search(r"/(home|root|usr|tmp)|localhost|127\.0\.0\.1", text)


def test_the_tables_say_what_was_reached() -> None:
    shown = terminal(an_outcome())
    assert "note: FastMCP is left out" in shown
    assert re.search(r"the bare mcp SDK +16 +0\.60 +1\.67 +at least 0\.7 +missed", shown)
    assert re.search(
        r"\| REST execute / a bare ASGI echo \| 16 \| 0\.50 .*\| reached \|", markdown(an_outcome())
    )


def test_the_picture_is_whole_and_says_itself_in_words() -> None:
    root = parsed(picture(an_outcome()))
    space = {"svg": "http://www.w3.org/2000/svg"}
    assert len(root.findall(".//svg:rect[@class='crib']", space)) == 4
    assert len(root.findall(".//svg:line[@class='goal']", space)) == 3
    told = root.findtext("svg:desc", "", space)
    assert "REST execute, Toolcrib: 4,000 calls a second" in told


def test_an_outcome_goes_into_a_folder_of_its_own(tmp_path: Path) -> None:
    written = keep(an_outcome(), tmp_path / "new")
    assert [path.name for path in written] == ["results.json", "bench.svg"]


def test_only_the_marked_block_of_a_page_is_written() -> None:
    page = "# Speed\n<!-- bench:begin -->old<!-- bench:end -->\nMore.\n"
    assert filled(page, "new") == "# Speed\n<!-- bench:begin -->\n\nnew\n\n<!-- bench:end -->\nMore.\n"
    assert filled(filled(page, "newer"), "new") == filled(page, "new")
    assert filled("# Speed\n", "new") == "# Speed\n"


def test_rounds_take_turns_and_count_right_answers_alone() -> None:
    asked: list[int] = []

    def drive(port: int, _request: Ask, connections: int, _seconds: float) -> Driven:
        asked.append(port)
        return Driven(calls=10, seconds=2.0, p50=1.0, p99=2.0, failures=2)

    cases: dict[Key, Case] = {
        ("rest", name): Case(a_peer(name, port), rest_call())
        for port, name in enumerate(("echo", "toolcrib"))
    }
    found = measure(cases, drive, Plan(rounds=2, seconds=1.0, connections=(1,)))
    assert asked == [0, 1, 0, 1, 1, 0], "a warm-up, then there and back"
    one = found[("rest", "echo"), 1]
    assert (one.rate, one.cpu, one.failures) == (4.0, None, 4)


def test_a_server_that_only_errs_ends_the_run() -> None:
    def drive(_port: int, _request: Ask, _connections: int, _seconds: float) -> Driven:
        return Driven(calls=10, seconds=2.0, p50=1.0, p99=2.0, failures=10)

    cases: dict[Key, Case] = {("rest", "echo"): Case(a_peer("echo"), rest_call())}
    with pytest.raises(WrongAnswer, match="echo gave no right answer"):
        measure(cases, drive, Plan(rounds=1, seconds=1.0, connections=(1,)))


def test_the_arguments_are_about_two_hundred_bytes() -> None:
    assert 180 < len(json.dumps({"text": TEXT})) < 220
    assert mcp_call().signed("k").raw(80).startswith(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:80\r\n")


def test_commands_are_pinned_where_there_are_two_cores() -> None:
    assert Cores(0, 1).for_load(["wrk"]) == ["taskset", "-c", "1", "wrk"]
    assert Cores(note="alone").for_server(["serve"]) == ["serve"]
