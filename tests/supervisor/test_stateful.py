"""Up, down, crash, call, replace, remove, sleep, wake, stop: over made-up sources, processes, MCP servers."""

import asyncio
from pathlib import Path

import pytest
import uvloop
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from tests.simulated_clock import SimulatedClockLoop
from tests.supervisor.machine import Machine
from tests.supervisor.servers import LINUX, ServerMachine, children
from tests.supervisor.subjects import ChildSubject, FakeSubject, Subject
from toolcrib.model import Tool


class FakeMachine(Machine):
    recovery = 300.0

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return SimulatedClockLoop()

    def make(self, tools: tuple[Tool, ...]) -> Subject:
        return FakeSubject(tools)

    @precondition(lambda self: self.newest)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        subject, _ = data.draw(st.sampled_from(list(self.subjects.values())))
        assert isinstance(subject, FakeSubject)
        self._do(subject.lose)


class ChildMachine(Machine):
    recovery = 60.0

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def make(self, tools: tuple[Tool, ...]) -> Subject:
        return ChildSubject(tools)


@pytest.mark.requirement("C2")
@pytest.mark.slow
def test_no_leaks_and_every_call_ends() -> None:
    run_state_machine_as_test(FakeMachine, settings=settings(max_examples=150, stateful_step_count=40))


@pytest.mark.slow
@LINUX
def test_no_process_or_pipe_is_left() -> None:
    before, family = len(list(Path("/proc/self/fd").iterdir())), children()
    run_state_machine_as_test(
        ChildMachine, settings=settings(max_examples=30, stateful_step_count=20, deadline=None)
    )
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert children() == family


class UvloopMachine(ServerMachine):
    def new_loop(self) -> asyncio.AbstractEventLoop:
        return uvloop.new_event_loop()


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.requirement("C1")
@pytest.mark.requirement("C2")
@LINUX
@pytest.mark.parametrize("machine", [ServerMachine, UvloopMachine])
def test_no_server_process_is_left(machine: type[ServerMachine]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=15, stateful_step_count=20, deadline=None)
    )
