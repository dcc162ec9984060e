"""`toolcrib usage`: what the store of this folder has counted."""

import pytest

from tests.cli.conftest import Shell
from tests.texts import matches

pytestmark = pytest.mark.requirement("F9")


def test_nothing_was_called_yet(shell: Shell) -> None:
    done = shell("usage")
    assert (done.code, done.out) == (0, "")
    assert matches("cli", "nothing was called yet", done.err)


@pytest.mark.slow
def test_usage_is_sorted_by_count(shell: Shell) -> None:
    shell("keys", "create", "makes-a-store")
    for name in ("add-numbers", "word-count", "add-numbers"):
        shell("call", "--demo", name, *(["numbers=1"] if name == "add-numbers" else ["text=1 2"]))
    shell("call", "--demo", "add-numbers", "numbers=none")
    rows = shell("usage").rows
    assert [row[:3] for row in rows] == [["demo:add-numbers", "3", "1"], ["demo:count-words", "1", "0"]]
    used = shell("usage", "--json").json["tools"]["demo:add-numbers"]
    assert 0 <= used["p50"] <= used["p95"]
    assert used["lastUsed"] > 1_700_000_000
