"""Energy bands: subscribers are notified when spending or recovery changes their tools."""

import anyio
import anyio.lowlevel
import pytest

from tests.waiting import until
from toolcrib.gateway.energy import EnergyMeter
from toolcrib.interfaces import EnergyAllowance
from toolcrib.store.shared import open_shared

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F5")]


async def test_band_changes_are_reported_both_ways() -> None:
    meter = EnergyMeter(open_shared("memory"), EnergyAllowance(start=100, recover=2_000))
    told: list[str] = []
    meter.listen(told.append)
    await meter.take("key:a", 10)
    assert not told, "still high"
    await meter.take("key:a", 85)
    assert told == ["key:a"]
    await until(lambda: len(told) >= 3)
    assert meter.level("key:a") > 50
    meter.close()


async def test_energy_is_per_user_with_a_floor() -> None:
    meter = EnergyMeter(open_shared("memory"), EnergyAllowance(start=100, recover=0))
    for _ in range(50):
        await meter.take("key:a", 10)
    assert meter.level("key:a") == -50
    assert meter.level("key:b") == 100
    assert meter.seconds_to("key:a", 10) is None
    assert meter.seconds_to("key:b", 10) == 0
    meter.close()


async def test_energy_recovers_up_to_its_start() -> None:
    meter = EnergyMeter(open_shared("memory"), EnergyAllowance(start=100, recover=1))
    await meter.take("key:a", 30)
    wait = meter.seconds_to("key:a", 100)
    assert wait is not None
    assert 29 < wait <= 30
    assert meter.seconds_to("key:a", 1_000) == pytest.approx(wait, abs=0.5)
    meter.close()


async def test_slow_recovery_schedules_no_timer() -> None:
    meter = EnergyMeter(open_shared("memory"), EnergyAllowance(start=100, recover=1e-15))
    await meter.take("key:a", 50)
    assert meter.level("key:a") == 50, "the edge of a band"
    assert meter.seconds_to("key:a", 51) is None
    assert meter.awaited == 0
    meter.close()


async def test_close_cancels_the_timers() -> None:
    meter = EnergyMeter(open_shared("memory"), EnergyAllowance(start=100, recover=1))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(meter.run)
        await meter.take("key:a", 60)
        assert meter.awaited == 1
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert meter.awaited == 0
