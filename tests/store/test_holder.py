"""Which process left a mark, and whether it still runs."""

import os
import signal
import subprocess
import sys

import pytest

from toolcrib.store import holder
from toolcrib.store.holder import is_gone, new_process_mark

CHILD = "from toolcrib.store.holder import new_process_mark; print(new_process_mark(), flush=True); input()"


def test_holder_mark_is_unique_and_its_process_alive() -> None:
    marks = {new_process_mark() for _ in range(10)}
    assert len(marks) == 10
    assert not any(is_gone(mark) for mark in marks)


def test_killed_process_counts_as_gone_before_it_is_reaped() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        mark = child.stdout.readline().strip()
        assert not is_gone(mark)
        os.kill(child.pid, signal.SIGKILL)
        # Waits until it is dead, and leaves it where it lies.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(mark)
    assert is_gone(mark)


def other(**parts: str) -> str:
    """A mark of ours with some parts changed."""
    names = ("host", "boot", "pid", "start", "nonce")
    return " ".join({**dict(zip(names, new_process_mark().split(" "), strict=True)), **parts}.values())


def test_holder_on_other_machine_is_unknown() -> None:
    assert not is_gone(other(host="elsewhere", pid="1", start="1"))


@pytest.mark.parametrize("parts", [{"boot": "earlier"}, {"start": "1"}, {"pid": "999999999"}])
def test_holder_of_earlier_boot_or_reused_pid_is_gone(parts: dict[str, str]) -> None:
    assert is_gone(other(**parts))


def test_where_there_is_no_proc_a_process_is_there_or_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(holder, "_PROC", tmp_path_factory.getbasetemp() / "no-proc")
    holder._host_and_boot.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        mark = new_process_mark()
        assert mark.split(" ")[1] == "-"
        assert not is_gone(mark)
        assert not is_gone(other(pid="1"))
        assert is_gone(other(pid="999999999"))
    finally:
        holder._host_and_boot.cache_clear()  # pyright: ignore[reportPrivateUsage]
