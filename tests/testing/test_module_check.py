"""`check_tools` and `check_module`: examples are run, the checklist applied, definitions published."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testing.modules import ACTING, FAULTY, GOOD, SHORT
from tests.texts import matches
from toolcrib import testing
from toolcrib.sources.functions import ModuleProblem
from toolcrib.testing import check_tools
from toolcrib.testing.module_check import (
    CheckedTool,
    ModuleReport,
    check_module,
    find_module,
    find_tests,
    publish_module,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for modules, which are unloaded after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return name


def checked(report: ModuleReport, name: str) -> CheckedTool:
    return next(each for each in report.tools if each.tool.local == name)


def short(report: ModuleReport, name: str) -> dict[str, str]:
    return dict(checked(report, name).shortfalls())


@pytest.mark.requirement("E15")
def test_good_tools_pass(folder: Path) -> None:
    check_tools(written(folder, "fine_cards.py", GOOD))
    check_tools("fine_cards")


@pytest.mark.requirement("E15")
def test_shortcomings_are_listed_with_advice(folder: Path) -> None:
    with pytest.raises(AssertionError) as raised:
        check_tools(written(folder, "short_cards.py", SHORT))
    assert matches("library", "shortcomings are listed with advice", str(raised.value))
    lines = str(raised.value).splitlines()
    assert [line.split(": ")[:2] for line in lines[1:]] == [
        ["short_cards:say-time", "description"],
        ["short_cards:say-time", "parameters"],
        ["short_cards:say-time", "examples"],
        ["short_cards:say-time", "tags"],
    ]


@pytest.mark.requirement("E15", "E8")
def test_examples_are_run(folder: Path) -> None:
    report = check_module(find_module(written(folder, "faulty_cards.py", FAULTY)))
    assert set(short(report, "raise-error")) == {"result", "errors"}
    assert "42" not in str(short(report, "raise-error"))
    assert checked(report, "raise-error").judgements["idempotent"].verdict == "person"
    assert list(short(report, "give-other")) == ["result"]
    assert "data.title" in short(report, "give-other")["result"]
    assert set(short(report, "claim-confidence")) == {"confidence"}
    assert set(short(report, "claim-little")) == {"confidence"}
    assert {"name", "registered"} <= set(short(report, "claim_little"))
    assert {"result", "hints"} <= set(short(report, "claim-much"))
    assert "agentHints.confidence" in short(report, "claim-much")["hints"]
    assert checked(report, "count-calls").judgements["idempotent"].verdict == "person"
    assert checked(report, "give-other").judgements["idempotent"].verdict == "pass"


@pytest.mark.requirement("E15", "E14")
def test_log_and_metrics_are_checked(folder: Path) -> None:
    report = check_module(find_module(written(folder, "watched_cards.py", GOOD)))
    judged = checked(report, "get-card").judgements
    assert matches("library", "log and metrics are checked", judged["logging"].message)
    assert matches("library", "log and metrics are checked 2", judged["metrics"].message)
    assert matches("library", "log and metrics are checked 3", judged["parameters"].message)


@pytest.mark.requirement("E15")
def test_mutating_tools_run_only_with_option(folder: Path) -> None:
    module = find_module(written(folder, "acting_cards.py", ACTING))
    judged = checked(check_module(module), "touch-card").judgements
    assert not (folder / "acting_cards.done").exists()
    assert judged["result"].verdict == "person"
    judged = checked(check_module(module, run_mutations=True, user="u1"), "touch-card").judgements
    assert (folder / "acting_cards.done").exists()
    assert judged["result"].verdict == "pass"


@pytest.mark.requirement("E15")
@pytest.mark.parametrize(
    "place,text,expected",
    [
        ("test_cards.py", "get_card", "test_cards.py names it"),
        ("tests/deep/cards_test.py", "'get-card'", "tests/deep/cards_test.py names it"),
        ("tests/test_all.py", 'check_tools("tested_cards")', "tests/test_all.py names it"),
        ("tests/test_all.py", "get_cards, forget_card, get-card-v2", ""),
        ("tests/notes.py", "get_card", ""),
    ],
)
def test_tests_that_name_the_tool_are_found(folder: Path, place: str, text: str, expected: str) -> None:
    written(folder, "pyproject.toml", "")
    written(folder, place, text)
    module = find_module(written(folder, "tested_cards.py", GOOD))
    judged = checked(check_module(module), "get-card").judgements["tests"]
    assert (judged.verdict, judged.message if expected else "") == (
        "pass" if expected else "person",
        expected,
    )


def test_unreadable_test_file_is_skipped(folder: Path) -> None:
    (folder / "test_gone.py").symlink_to(folder / "nowhere.py")
    assert find_tests(find_module(written(folder, "unread_cards.py", GOOD))) == {}


@pytest.mark.requirement("E15")
def test_file_in_package_is_loaded_once_by_full_name(folder: Path) -> None:
    written(folder, "cards_package/__init__.py", "")
    file = written(folder, "cards_package/tools.py", GOOD)
    by_file, by_name = find_module(file), find_module("cards_package.tools")
    assert by_file == by_name
    assert by_file.tools[0] is by_name.tools[0]
    assert "tools" not in sys.modules
    assert by_name.published == folder / "cards_package" / "tools.published.json"


def test_loaded_file_keeps_its_module_name(folder: Path) -> None:
    file = written(folder, "spread/loose_cards.py", GOOD)
    by_name, by_file = find_module("spread.loose_cards"), find_module(file)
    assert by_name == by_file
    assert "loose_cards" not in sys.modules


def test_package_can_be_checked_as_a_module(folder: Path) -> None:
    file = written(folder, "whole_cards/__init__.py", GOOD)
    assert find_module(file).name == "whole_cards"
    assert find_module("whole_cards").published == folder / "whole_cards.published.json"


def test_file_shadowed_by_another_module_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolcrib.demo import tools

    monkeypatch.setitem(sys.modules, "posing_cards", tools)
    with pytest.raises(ModuleProblem) as raised:
        find_module(written(folder, "posing_cards.py", GOOD))
    text = str(raised.value)
    assert matches("library", "file shadowed by another module is refused", text, other=tools.__file__)


@pytest.mark.parametrize(
    "text,expected",
    [
        ("x = 1", "has no tools"),
        ("raise OSError('no disk')", "does not import: OSError: no disk"),
        (
            GOOD + GOOD.replace("def get_card", "def card").replace("@tool(", '@tool(name="get-card",'),
            "two tools named get-card",
        ),
        (SHORT.replace("create_tool", "tool"), "does not import: ToolDefinitionError: tool say-time"),
    ],
)
def test_unusable_module_is_reported(folder: Path, text: str, expected: str) -> None:
    with pytest.raises(ModuleProblem, match=expected):
        find_module(written(folder, "unusable_cards.py", text))


@pytest.mark.requirement("E16")
def test_definitions_are_published_and_compared(folder: Path) -> None:
    module = find_module(written(folder, "kept_cards.py", GOOD))
    path = publish_module(check_module(module))
    assert path is not None
    assert path == folder / "kept_cards.published.json"
    published = path.read_text()
    assert publish_module(check_module(module)) == path
    assert path.read_text() == published
    path.write_text(published.replace("get-card", "fetch-card"))
    report = check_module(module)
    (failure,) = report.failures()
    assert failure.startswith("kept_cards:fetch-card: published: ")
    assert publish_module(report) is None
    path.write_text("nonsense")
    assert ["cannot be read" in each for each in check_module(module).failures()] == [True]


def test_module_without_file_is_checked_but_not_published(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = find_module(written(folder, "lost_cards.py", GOOD))
    monkeypatch.delattr(sys.modules["lost_cards"], "__file__")
    without_file = find_module("lost_cards")
    assert (without_file.file, without_file.published, without_file.tools) == (None, None, module.tools)
    assert publish_module(check_module(without_file)) is None


def test_only_public_names_are_exported() -> None:
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    assert not hasattr(testing, "nothing")
