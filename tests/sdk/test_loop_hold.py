"""An async function that holds the event loop is named in the log; results and errors pass through."""

import asyncio
import time
from collections.abc import Awaitable

import anyio
import pytest

from tests.sources.calling import run
from toolcrib.sdk import create_tool, threads
from toolcrib.sdk.threads import warn_if_blocking

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]


async def holding(seconds: float) -> str:
    await anyio.lowlevel.checkpoint()
    time.sleep(seconds)  # noqa: ASYNC251 - what is measured
    await anyio.lowlevel.checkpoint()
    return "done"


async def test_tool_that_holds_the_loop_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threads, "LOOP_HELD_SECONDS", 0.05)

    @create_tool
    async def hold() -> str:
        return await holding(0.1)

    assert (await run(hold, {})).data == "done"
    assert [each.getMessage().split(" the ")[0] for each in caplog.records] == ["test:hold blocked"]


async def test_waiting_tool_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    assert await warn_if_blocking(holding(0.0), "fake:hold") == "done"
    assert caplog.records == []


async def test_errors_and_cancellations_pass_through() -> None:
    seen: list[str] = []

    async def fail() -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            await anyio.lowlevel.cancel_shielded_checkpoint()
            seen.append("ended")

    async def divide() -> float:
        await anyio.lowlevel.checkpoint()
        return 1 / 0

    with anyio.move_on_after(0.01):
        await warn_if_blocking(fail(), "fake:fail")
    assert seen == ["cancelled", "ended"]
    with pytest.raises(ZeroDivisionError):
        await warn_if_blocking(divide(), "fake:divide")


async def test_other_awaitables_stay_as_they_are() -> None:
    future: Awaitable[int] = asyncio.get_running_loop().create_future()
    assert warn_if_blocking(future, "fake:future") is future
