"""The pytest plugin in subprocesses: a test per item, broken modules, and the `crib` fixture."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import environment
from tests.testing.modules import GOOD, SHORT

pytestmark = pytest.mark.slow

LIGHT = ["toolcrib", "toolcrib.testing", "toolcrib.testing.plugin", "toolcrib.version"]

OLD = GOOD.replace("@tool(", "@create_tool(deprecated={'since': '1.0.0'},").replace(
    "import", "import create_tool,"
)
CALLING = """
import pytest
from plugged_cards import get_card


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.anyio
async def test_a_call(crib):
    async with crib(get_card) as gateway:
        result = await gateway.call("get-card", {"card_id": "card_1"})
    assert result.data == {"title": "card_1"}
"""


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run pytest as a tool author does, without the settings of this project."""
    done = subprocess.run(
        (
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-W",
            "error",
            *arguments,
        ),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.requirement("E15")
def test_plugin_adds_a_test_per_tool_and_item(tmp_path: Path) -> None:
    (tmp_path / "plugged_cards.py").write_text(GOOD)
    (tmp_path / "plugged_short.py").write_text(SHORT)
    code, output = run(tmp_path, "-v", "--toolcrib", "plugged_cards", "--toolcrib", "plugged_short.py")
    assert code == 1, output
    assert "plugged_cards::get-card[name] PASSED" in output
    assert "plugged_cards::get-card[description] SKIPPED (needs human review: " in output
    assert "plugged_cards::published PASSED" in output
    assert "plugged_short.py::say-time[tags] FAILED" in output
    assert "no tag: add at least one" in output
    assert "4 failed" in output
    assert "Traceback" not in output


@pytest.mark.requirement("E15", "E16")
def test_selection_runs_and_broken_module_or_check_fails_once(tmp_path: Path) -> None:
    (tmp_path / "plugged_cards.py").write_text(GOOD)
    (tmp_path / "plugged_cards.published.json").write_text("nonsense")
    (tmp_path / "plugged_old.py").write_text(OLD)
    (tmp_path / "plugged_wrong.py").write_text("raise OSError('no disk')")
    (tmp_path / "test_calling.py").write_text(CALLING)
    modules = ("--toolcrib", "plugged_cards", "--toolcrib", "plugged_wrong", "--toolcrib", "plugged_old")
    code, output = run(tmp_path, "-v", "-k", "not description", *modules)
    assert code == 1, output
    assert "test_calling.py::test_a_call PASSED" in output
    assert "plugged_wrong::module FAILED" in output
    assert "OSError: no disk" in output
    assert "get-card[description]" not in output
    assert "plugged_cards::published FAILED" in output
    assert "plugged_old::get-card[definition] FAILED" in output
    assert "3 failed" in output


def test_plugin_is_lazy_without_options(tmp_path: Path) -> None:
    (tmp_path / "test_light.py").write_text(
        "import sys\n\n\ndef test_light():\n"
        "    ours = [name for name in sys.modules if name.startswith('toolcrib')]\n"
        f"    assert sorted(ours) == {LIGHT!r}\n"
    )
    code, output = run(tmp_path, "-q")
    assert code == 0, output
