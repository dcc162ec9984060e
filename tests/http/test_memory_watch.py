"""The watch over memory: when work is refused and taken again, and what the limit is."""

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from tests.waiting import until
from toolcrib.errors import Refused
from toolcrib.http import memory
from toolcrib.http.memory import MemoryWatch, ResidentMemory, memory_limit

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]


def test_work_is_refused_above_and_taken_again_below() -> None:
    watch = MemoryWatch(1000)
    seen: list[bool] = []
    for resident in (100, 890, 901, 850, 801, 799, 890, 950):
        watch.add_sample(resident)
        seen.append(watch.is_high)
    assert seen == [False, False, True, True, True, False, False, True]
    assert watch.begun == 2
    with pytest.raises(Refused) as refused:
        watch.check()
    assert (refused.value.problem.code, refused.value.problem.retry_after) == ("OVERLOADED", 2.0)


async def test_caches_are_emptied_while_memory_is_short() -> None:
    relieved: list[bool] = []
    watch = MemoryWatch(100, relieve=lambda: relieved.append(True), resident=lambda: 95)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        await until(lambda: bool(relieved))
        assert watch.is_high
        tasks.cancel_scope.cancel()
    assert not watch.is_high


async def test_no_limit_means_no_watch() -> None:
    await MemoryWatch(None, resident=lambda: 1 << 60).run()


# --- under pressure ---


class Pressed:
    """A process short of memory: what it has, how often that was looked at, and what was done about it."""

    def __init__(self) -> None:
        self.resident, self.looks, self.reliefs = 95, 0, 0
        self.watch = MemoryWatch(100, relieve=self._relieve, resident=self._look)

    def _look(self) -> int:
        self.looks += 1
        return self.resident

    def _relieve(self) -> None:
        self.reliefs += 1


@asynccontextmanager
async def pressed(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Pressed]:
    """Watch a process that looks, and gives back, as often as it can."""
    monkeypatch.setattr(memory, "FREQUENT_SAMPLE_SECONDS", 0.001)
    monkeypatch.setattr(memory, "SAMPLE_SECONDS", 0.001)
    monkeypatch.setattr(memory, "RELIEF_SECONDS", 0.001)
    process = Pressed()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.watch.run)
        yield process
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError(), OSError()])
async def test_memory_watch_continues_when_nothing_is_freed(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(function: Callable[[], None], **options: Any) -> None:
        raise error

    monkeypatch.setattr(memory.to_thread, "run_sync", fail)
    async with pressed(monkeypatch) as process:
        await until(lambda: process.reliefs > 3)
        assert process.watch.is_high
        process.resident = 50
        await until(lambda: not process.watch.is_high)


async def test_memory_is_given_back_though_all_threads_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed = threading.Event()
    monkeypatch.setattr(memory, "trim", trimmed.set)
    shared = to_thread.current_default_thread_limiter()
    borrowers = [object() for _ in range(int(shared.available_tokens))]
    for each in borrowers:
        shared.acquire_on_behalf_of_nowait(each)
    try:
        async with pressed(monkeypatch):
            await until(trimmed.is_set, within=5.0)
    finally:
        for each in borrowers:
            shared.release_on_behalf_of(each)


async def test_memory_is_looked_at_while_it_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, gate = threading.Event(), threading.Event()

    def trim() -> None:
        begun.set()
        gate.wait(10)

    monkeypatch.setattr(memory, "trim", trim)
    async with pressed(monkeypatch) as process:
        try:
            await until(begun.is_set)
            process.resident = 50
            await until(lambda: not process.watch.is_high, within=5.0)
            assert process.reliefs == 1
        finally:
            gate.set()


async def test_garbage_is_collected_once_as_memory_gets_short(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[bool] = []
    monkeypatch.setattr(memory.gc, "collect", lambda: collected.append(True))
    monkeypatch.setattr(memory, "COLLECT_SECONDS", 60.0)
    async with pressed(monkeypatch) as process:
        for episode in (1, 2):
            process.resident, before = 95, process.reliefs
            await until(lambda before=before: process.reliefs > before + 5)
            assert len(collected) == episode
            process.resident = 50
            await until(lambda: not process.watch.is_high)


async def test_garbage_is_collected_ever_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    at: list[float] = []
    monkeypatch.setattr(memory.gc, "collect", lambda: at.append(anyio.current_time()))
    monkeypatch.setattr(memory, "COLLECT_SECONDS", 0.02)
    monkeypatch.setattr(memory, "MAX_COLLECT_SECONDS", 0.07)
    async with pressed(monkeypatch):
        await until(lambda: len(at) >= 5)
    pauses = [later - earlier for earlier, later in pairwise(at)]
    assert all(map(float.__ge__, pauses, (0.02, 0.04, 0.07, 0.07)))


async def test_large_sizes_are_measured_at_once() -> None:
    process = Pressed()
    process.resident = 50
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.watch.run)
        await until(lambda: process.looks > 0)
        assert process.watch.fits(40)
        assert not process.watch.fits(41)
        assert process.watch.fits(30, reserved=10)
        assert not process.watch.fits(30, reserved=11)
        process.resident = 91
        assert not process.watch.fits(0)
        assert process.watch.is_high
        process.resident = 85
        assert not process.watch.fits(0)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("watch", [MemoryWatch(None), MemoryWatch(100)])
def test_everything_fits_where_nothing_is_watched(watch: MemoryWatch) -> None:
    assert watch.fits(1 << 60)


async def test_refused_size_empties_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pressed(monkeypatch) as process:
        process.resident = 50
        await until(lambda: process.watch.resident == 50)
        before = process.reliefs
        assert not process.watch.fits(10, reserved=40)
        await anyio.lowlevel.checkpoint()
        assert process.reliefs == before
        assert not process.watch.fits(41)
        await until(lambda: process.reliefs == before + 1)


@pytest.mark.parametrize("room, is_refused", [(-1, True), (0, False)])
async def test_large_body_needs_room_for_its_copies(room: int, is_refused: bool) -> None:
    size, limit = memory.LARGE_BYTES + 1, 100 << 20
    free = int(limit * memory.SHED_ABOVE) - size * memory.BODY_COPIES
    watch = MemoryWatch(limit, resident=lambda: free - room)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        await until(lambda: watch.resident > 0)
        watch.check_body(memory.LARGE_BYTES)
        if is_refused:
            with pytest.raises(Refused) as refused:
                watch.check_body(size)
            assert (refused.value.problem.code, refused.value.problem.retry_after) == ("OVERLOADED", 2.0)
        else:
            watch.check_body(size)
        tasks.cancel_scope.cancel()


# --- the limit ---


@pytest.fixture
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of all cgroups, and `own` in it, which names the cgroup of this process."""
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "OWN_CGROUPS", tmp_path / "cgroup/own")
    monkeypatch.setattr(memory, "machine_memory", lambda: [10_000])
    (tmp_path / "cgroup").mkdir()
    return tmp_path / "cgroup"


@pytest.mark.parametrize(
    "configured, container, expected",
    [
        (100, "1000", 100 << 20),
        (0, "1000", None),
        (None, "1000", 750),
        (None, "max\n", 7500),
        (None, "9223372036854771712", 7500),
    ],
)
def test_limit_is_the_smallest_known(
    configured: int | None, container: str, expected: int | None, cgroups: Path
) -> None:
    (cgroups / "memory.max").write_text(container)
    assert memory_limit(configured) == expected


V2, V1 = "memory.max", "memory.limit_in_bytes"


@pytest.mark.parametrize(
    "own, limits, expected",
    [
        ("0::/system.slice/crib.service", {f"system.slice/crib.service/{V2}": 1000}, 750),
        ("0::/system.slice/crib.service", {f"system.slice/{V2}": 2000, V2: 4000}, 1500),
        ("0::/a:b/c", {f"a:b/c/{V2}": 4000, f"a:b/{V2}": 8000}, 3000),
        ("0::/a/b", {f"a/{V2}": 6000, f"a/b/c/{V2}": 100, f"other/{V2}": 100}, 4500),
        ("0::/", {V2: 1000}, 750),
        ("0::/gone/from/here", {V2: 1000}, 750),
        ("0::/../beside", {V2: 1000, f"beside/{V2}": 100}, 750),
        ("5:cpu,memory:/unit\n1:name=systemd:/x\n0::/x", {f"memory/unit/{V1}": 1000}, 750),
        ("5:memory:/unit\n0::/", {f"memory/{V1}": 2000, f"memory/unit/{V1}": 9_000_000}, 1500),
        ("5:pids:/unit\n4:memory:/", {f"memory/unit/{V1}": 100}, 7500),
        ("nonsense", {V2: 1000}, 750),
    ],
)
def test_limits_of_all_cgroups_above_this_process_hold(
    own: str, limits: dict[str, int], expected: int, cgroups: Path
) -> None:
    (cgroups / "own").write_text(f"{own}\n")
    for place, limit in limits.items():
        (cgroups / place).parent.mkdir(parents=True, exist_ok=True)
        (cgroups / place).write_text(f"{limit}\n")
    assert memory_limit(None) == expected


def test_resident_memory_is_read() -> None:
    resident = ResidentMemory()
    assert resident() > 1 << 20
    resident.close()
    resident.close()
    assert resident() == 0
