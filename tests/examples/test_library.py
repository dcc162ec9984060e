"""The library example runs and prints what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib.sdk import Registry
from toolcrib.sources.functions import load_module

EXAMPLES = Path(__file__).parents[2] / "examples"

PRINTED = """\
Tools: get_card, count_words
Found: {'card_id': 'card_123', 'title': 'Mend the gate'}
Wrong: INVALID_ARGUMENTS at arguments.card_id
  1 of 2: read card_123
  2 of 2: read card_124
Counted: 5 words in all.
"""


@pytest.mark.slow
def test_it_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "library.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (PRINTED, "")
    assert list(tmp_path.iterdir()) == []


def test_its_tools_are_good_ones() -> None:
    registry = Registry()
    for tool in load_module("library", folder=EXAMPLES):
        assert registry.validate(tool) == []
