"""The watch over memory: when work is refused and taken again, and what the limit is."""

from pathlib import Path

import anyio
import pytest

from tests.waiting import until
from toolcrib.asgi import memory
from toolcrib.asgi.memory import MemoryWatch, ResidentMemory, memory_limit
from toolcrib.errors import Refused

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]


def test_work_is_refused_above_and_taken_again_below() -> None:
    watch = MemoryWatch(1000)
    seen: list[bool] = []
    for resident in (100, 890, 901, 850, 801, 799, 890, 950):
        watch.look(resident)
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
def test_limit_is_the_smallest_that_is_known(
    configured: int | None,
    container: str,
    expected: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "memory.max").write_text(container)
    monkeypatch.setattr(memory, "CGROUP_LIMITS", (str(tmp_path / "memory.max"), str(tmp_path / "none")))
    monkeypatch.setattr(memory, "machine_memory", lambda: [10_000])
    assert memory_limit(configured) == expected


def test_resident_memory_is_read() -> None:
    resident = ResidentMemory()
    assert resident() > 1 << 20
    resident.close()
    resident.close()
    assert resident() == 0
