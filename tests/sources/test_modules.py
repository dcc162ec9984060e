"""A module named in the config is imported, and its tools are found."""

import itertools
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.texts import matches
from toolcrib.sdk import ToolDefinitionError
from toolcrib.sources.functions import ModuleProblem, load_module, source_id

NUMBER = itertools.count()
Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Generator[Write]:
    """Writes a module of a new name into a folder of its own, and says its name."""
    before = list(sys.path)

    def written(code: str) -> str:
        name = f"written_{next(NUMBER)}"
        (tmp_path / f"{name}.py").write_text(code)
        return name

    yield written
    sys.path[:] = before


def names(path: str, folder: Path) -> list[str]:
    return [each.name for each in load_module(path, folder=folder)]


@pytest.mark.requirement("B1")
def test_module_tools_and_registries_are_found_once(write: Write, tmp_path: Path) -> None:
    path = write(
        """
from toolcrib.sdk import Registry, create_tool

@create_tool
def get_card(): ...

again = get_card

@create_tool
def _hidden(): ...

registry = Registry()
registry.register(get_card)
registry.register_tool({"name": "get_weather"}, lambda arguments: arguments)
number = 7
"""
    )
    assert names(path, tmp_path) == ["get-card", "get_weather"]


def test_a_package_may_gather_the_tools_of_its_modules(tmp_path: Path, write: Write) -> None:
    package = tmp_path / "shelf_of_tools"
    package.mkdir()
    (package / "__init__.py").write_text("from shelf_of_tools.cards import get_card")
    (package / "cards.py").write_text(
        "from toolcrib.sdk import create_tool\n@create_tool\ndef get_card(): ..."
    )
    assert names("shelf_of_tools", tmp_path) == ["get-card"]
    assert names("shelf_of_tools.cards", tmp_path) == ["get-card"]


def test_installed_package_precedes_folder(tmp_path: Path, write: Write) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError")
    with pytest.raises(ModuleProblem) as raised:
        load_module("json", folder=tmp_path)
    assert matches("sources", "installed package precedes folder", str(raised.value))
    assert sys.path.index(str(tmp_path)) == len(sys.path) - 1
    with pytest.raises(ModuleProblem):
        load_module("json", folder=tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


@pytest.mark.parametrize(
    "code,said",
    [
        ("import nowhere_to_be_found", "needs nowhere_to_be_found, which is not installed"),
        ("def broken(:", "does not import: SyntaxError"),
        ("raise SystemExit(3)", "does not import: SystemExit: 3"),
        ("1 / 0", "does not import: ZeroDivisionError"),
        (
            "from toolcrib.sdk import create_tool\n@create_tool(cache_ttl=5)\ndef act(): ...",
            "does not import: ToolDefinitionError: tool act: a mutation cannot be cached",
        ),
    ],
)
def test_import_error_of_module_is_reported(write: Write, tmp_path: Path, code: str, said: str) -> None:
    with pytest.raises(ModuleProblem, match=said):
        load_module(write(code), folder=tmp_path)


def test_the_cause_of_a_bad_definition_is_kept(write: Write, tmp_path: Path) -> None:
    with pytest.raises(ModuleProblem) as caught:
        load_module(
            write("from toolcrib.sdk import create_tool\n@create_tool\ndef act(*a): ..."), folder=tmp_path
        )
    assert isinstance(caught.value.__cause__, ToolDefinitionError)


@pytest.mark.parametrize("path", ["no_such_module", "no_such_package.tools", "toolcrib.no_such_tools"])
def test_a_module_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(ModuleProblem) as raised:
        load_module(path)
    assert matches("sources", f"missing module {path} is named", str(raised.value))


@pytest.mark.parametrize("path", ["", ".tools", "my-tools", "tools.py/x", "a..b"])
def test_invalid_dotted_name_is_refused(path: str) -> None:
    with pytest.raises(ModuleProblem) as raised:
        load_module(path)
    assert matches("sources", f"invalid dotted name {path!r} is refused", str(raised.value))


@pytest.mark.parametrize(
    "path,expected",
    [
        ("my_package.tools", "tools"),
        ("tools", "tools"),
        ("a.CardTools", "card_tools"),
        ("a._private", "private"),
    ],
)
def test_the_source_is_called_by_the_last_part(path: str, expected: str) -> None:
    assert source_id(path) == expected
