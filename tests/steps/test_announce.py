"""Slow messages: sent once per call, never when the provider speaks itself."""

import anyio
import pytest

from tests.simulated_clock import simulated_clock
from tests.texts import matches
from tests.waiting import until
from toolcrib.model import Call, Origin, Progress, Result, Slow
from toolcrib.steps.announce import Announce
from toolcrib.testing import a_call, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G2")]
SLOW = a_tool("tools:look", slow=Slow(threshold=0.01, message="One moment."))


class _Listener:
    """Records reports."""

    def __init__(self) -> None:
        self.heard: list[Progress] = []

    async def report(self, progress: Progress) -> None:
        self.heard.append(progress)


async def _run(
    listener: _Listener | None, *, step: Announce | None = None, call: Call | None = None
) -> Result:
    stage = (step or Announce()).fit(SLOW)
    assert stage is not None

    listening = listener or _Listener()

    passed: list[Call] = []

    async def proceed(call: Call) -> Result:
        passed.append(call)
        with anyio.move_on_after(0.2):
            await until(lambda: bool(listening.heard))
        return Result(data=1)

    plain = call or a_call(SLOW)
    asked = plain if listener is None else plain.replace(report=listener.report)
    result = await stage(asked, proceed)
    assert passed == [asked]
    return result


@simulated_clock
async def test_slow_message_is_sent_once_after_its_delay() -> None:
    listener = _Listener()
    assert (await _run(listener)).data == 1
    assert listener.heard == [Progress(message="One moment.", kind="waiting")]


async def test_fast_answer_sends_no_slow_message() -> None:
    listener = _Listener()
    stage = Announce().fit(a_tool("tools:look", slow=Slow(threshold=60, message="One moment.")))
    assert stage is not None

    async def proceed(call: Call) -> Result:
        del call
        return Result(data=1)

    assert (await stage(a_call(SLOW).replace(report=listener.report), proceed)).data == 1
    assert not listener.heard


@simulated_clock
async def test_slow_message_needs_a_channel() -> None:
    assert (await _run(None)).data == 1


@simulated_clock
async def test_speaking_provider_gets_no_slow_message() -> None:
    listener = _Listener()
    step = Announce(lambda call: call.origin.provider == "openai_realtime")
    await _run(listener, step=step, call=a_call(SLOW, origin=Origin(provider="openai_realtime")))
    assert not listener.heard
    await _run(listener, step=step, call=a_call(SLOW, origin=Origin(provider="openai_chat")))
    assert len(listener.heard) == 1


async def test_raising_listener_does_not_affect_the_call(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Progress] = []

    async def report(progress: Progress) -> None:
        heard.append(progress)
        raise ZeroDivisionError

    stage = Announce().fit(SLOW)
    assert stage is not None

    async def proceed(call: Call) -> Result:
        del call
        await until(lambda: bool(heard))
        return Result(data=1)

    assert (await stage(a_call(SLOW).replace(report=report), proceed)).data == 1
    await until(lambda: bool(caplog.messages))
    (message,) = caplog.messages
    assert matches("log", "slow message could not be sent", message)


@pytest.mark.parametrize("slow", [None, Slow(threshold=0, message="never")])
def test_announce_step_is_skipped_without_slow_message(slow: Slow | None) -> None:
    assert Announce().fit(a_tool("tools:quick", slow=slow)) is None
