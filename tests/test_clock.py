"""The clock passes evenly: jumps of the wall clock, restarts and reboots do not change that."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clocks import DAY, Machine
from toolcrib.clock import MAX_UNPROVEN_SECONDS, Clock, boot_id, elapsed_seconds
from toolcrib.store import open_store
from toolcrib.store.sql.database import save_clock

pytestmark = pytest.mark.requirement("E12")


@pytest.mark.parametrize("jump", [25 * 3600.0, -25 * 3600.0, 400 * DAY])
def test_a_jump_of_the_wall_clock_changes_nothing(jump: float) -> None:
    machine = Machine()
    clock = machine.clock()
    began = clock.now()
    assert began == machine.wall
    machine.jumps(jump)
    assert clock.now() == began
    machine.passes(60.0)
    assert clock.now() - began == pytest.approx(60.0)


@pytest.mark.parametrize("jump", [25 * 3600.0, -25 * 3600.0])
def test_a_restart_after_a_jump_knows_how_long_it_took(jump: float) -> None:
    machine = Machine()
    before = machine.clock()
    last = before.reading()
    machine.jumps(jump)
    machine.passes(90.0)
    after = machine.clock()
    after.resume(last)
    assert after.now() - last.seen == pytest.approx(90.0)


@pytest.mark.parametrize(
    "off, counts", [(60.0, 60.0), (25 * 3600.0, MAX_UNPROVEN_SECONDS), (-25 * 3600.0, 0.0)]
)
def test_after_a_reboot_the_wall_clock_counts_for_an_hour(off: float, counts: float) -> None:
    machine = Machine()
    last = machine.clock().reading()
    machine.reboots(off=off)
    after = machine.clock()
    after.resume(last)
    assert after.now() - last.seen == pytest.approx(counts)


def test_a_date_in_the_past_stays_past_when_the_wall_goes_back() -> None:
    machine = Machine()
    clock, ends = machine.clock(), machine.wall + 10.0
    assert not clock.is_past(ends)
    machine.passes(10.0)
    assert clock.is_past(ends)
    machine.jumps(-DAY)
    assert clock.is_past(ends)
    last = clock.reading()
    machine.reboots()
    later = machine.clock()
    later.resume(last)
    assert later.is_past(ends)


def test_a_date_has_come_by_the_wall_after_a_long_stop() -> None:
    machine = Machine()
    last, ends = machine.clock().reading(), machine.wall + DAY
    machine.reboots(off=3 * DAY)
    clock = machine.clock()
    clock.resume(last)
    assert clock.is_past(ends)
    machine.jumps(-3 * DAY)
    assert clock.is_past(ends)


def test_time_that_was_not_counted_once_is_not_counted_later() -> None:
    machine = Machine()
    last = machine.clock().reading()
    machine.reboots(off=30 * DAY)
    behind = machine.clock()
    behind.resume(last)
    began, last = behind.now(), behind.reading()
    machine.reboots("third", off=60.0)
    after = machine.clock()
    after.resume(last)
    assert after.now() - began == pytest.approx(60.0)


STEPS = st.lists(
    st.tuples(st.sampled_from(["passes", "jumps", "restart", "reboot"]), st.floats(-1e8, 1e8)), max_size=20
)


@given(STEPS)
def test_clock_is_monotonic_and_not_ahead(steps: list[tuple[str, float]]) -> None:
    machine = Machine()
    clock, passed, reboots, shown = machine.clock(), 0.0, 0, list[float]()
    for number, (what, seconds) in enumerate(steps):
        shown.append(clock.now())
        if what == "passes":
            machine.passes(abs(seconds))
            passed += abs(seconds)
        elif what == "jumps":
            machine.jumps(seconds)
        else:
            last = clock.reading()
            if what == "reboot":
                machine.reboots(f"boot {number}", off=seconds)
                reboots += 1
            clock = machine.clock()
            clock.resume(last)
    shown.append(clock.now())
    assert all(earlier <= later + 1e-3 for earlier, later in pairwise(shown))
    assert shown[-1] - shown[0] <= passed + reboots * MAX_UNPROVEN_SECONDS + 1e-3


def test_the_real_clocks_show_the_time() -> None:
    first = elapsed_seconds()
    assert elapsed_seconds() >= first
    assert boot_id() == boot_id()
    assert abs(Clock().now() - Clock().now()) < 60


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
async def test_a_store_resumes_its_clock(
    kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("store")
    url = f"sqlite:///{folder}/x.db" if kind == "sqlite" else request.getfixturevalue("fresh_database")
    machine = Machine()
    store = await open_store(url, machine.clock())
    began = store.clock.now()
    await save_clock(store.database, store.clock)
    machine.passes(60.0)
    ahead = Clock(lambda: machine.wall - DAY, lambda: machine.elapsed, "other machine")
    await save_clock(store.database, ahead)  # behind the stored one, so it changes nothing
    await store.close()
    machine.jumps(25 * 3600.0)
    again = await open_store(url, machine.clock())
    assert again.clock.now() - began == pytest.approx(60.0)
    await again.close()
