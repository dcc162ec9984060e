"""The wall clock jumps by 25 hours, while running and between two starts: no keyed change is made twice."""

from pathlib import Path

import pytest

from tests.clocks import DAY, Machine
from tests.steps.replay_steps import CountingHandler, ReplaySteps, code, keyed
from toolcrib.quotas import REPLAY_RETENTION_SECONDS
from toolcrib.store import open_store
from toolcrib.store.sql.database import save_clock

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]

JUMPS = [25 * 3600.0, -25 * 3600.0, 400 * DAY]


def url_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    return f"sqlite:///{folder}/x.db" if kind == "sqlite" else request.getfixturevalue("fresh_database")


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
@pytest.mark.parametrize("jump", JUMPS)
async def test_keyed_mutation_is_not_repeated_after_a_clock_jump(
    jump: float, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url, machine, handler = url_of(kind, request, tmp_path), Machine(), CountingHandler()
    store = await open_store(url, machine.clock())
    steps = ReplaySteps(store.replays, clock=store.clock)
    await save_clock(store.database, store.clock)
    await steps.chain(handler)(keyed())
    machine.jumps(jump)
    await steps.replay.bounded.tidy()
    assert (await steps.chain(handler)(keyed())).data == {"done": 1}
    await store.close()
    machine.jumps(jump)
    for boot in ("first", "second"):
        machine.boot = boot
        store = await open_store(url, machine.clock())
        steps = ReplaySteps(store.replays, clock=store.clock)
        await steps.replay.bounded.tidy()
        assert (await steps.chain(handler)(keyed())).data == {"done": 1}
        await store.close()
    assert handler.done == 1


@pytest.mark.parametrize("jump", JUMPS)
async def test_key_expires_after_a_day_of_real_time(jump: float) -> None:
    machine, handler = Machine(), CountingHandler()
    store = await open_store("sqlite://", machine.clock())
    steps = ReplaySteps(store.replays, clock=store.clock)
    await steps.chain(handler)(keyed())
    machine.jumps(jump)
    machine.passes(REPLAY_RETENTION_SECONDS + 60)
    assert await steps.replay.bounded.tidy() == 1
    assert (await steps.chain(handler)(keyed())).data == {"done": 2}
    await store.close()


async def test_call_of_another_process_survives_a_clock_jump(tmp_path: Path) -> None:
    machine, handler = Machine(), CountingHandler()
    store = await open_store("sqlite://", machine.clock())
    there = ReplaySteps(store.replays, "there", store.clock)
    here = ReplaySteps(store.replays, "here", store.clock)
    inner: list[str | None] = []

    async def meanwhile(call: object) -> object:
        machine.jumps(25 * 3600.0)
        inner.append(code(await here.chain(handler)(keyed())))
        return await handler(call)  # pyright: ignore[reportArgumentType]

    await there.chain(meanwhile)(keyed())  # pyright: ignore[reportArgumentType]
    assert (inner, handler.done) == (["IN_PROGRESS"], 1)
    await store.close()
