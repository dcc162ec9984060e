"""Scripted tasks, whose next call is known after every step, and what was suggested for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from bench.hints.gateway import AUTHORED, RobotGateway
from bench.hints.judge import Advice
from bench.hints.robot import Robot
from bench.hints.toolset import Request
from bench.hints.valid_calls import load

FIRST = 3
"""The next call is looked for among so many suggestions."""
_REFERENCE = "$"
"""Begins a value that an earlier result has: `$0.decks.0.id` is in the data of the first call."""


class Then(StrEnum):
    """What the result of a step gives for the next call."""

    FLOW = "flow"
    """The result has every argument of the next call as a value."""
    TEXT = "text"
    """The result has it too, but only within a text for people."""
    NONE = "none"
    """No call can be derived from the result."""
    END = "end"
    """Some call can, but the task does not make it; not judged."""


@dataclass(frozen=True)
class Step:
    """One call of a task; its arguments may refer to the results of earlier calls."""

    request: Request
    then: Then


@dataclass(frozen=True)
class Task:
    """Calls that someone makes one after the other, as a user of their own unless one is named."""

    name: str
    steps: tuple[Step, ...]
    user: str | None = None


@dataclass(frozen=True, kw_only=True)
class StepTaken:
    """A step, what was advised after it, and the call that the task makes next."""

    task: str
    then: Then
    advice: Advice
    next: Request | None
    made: tuple[Request, ...]
    """All calls of the task."""

    @property
    def hit(self) -> bool:
        """Whether the next call is among the first suggestions, with all its arguments."""
        return any(each.call == self.next for each in self.advice.suggestions[:FIRST] if each.call)

    @property
    def harmful(self) -> bool:
        """Whether the robot would follow a mutation that neither the task nor the tool's author asks for."""
        first = self.advice.first
        if first is None or first.call is None or first.call in self.made:
            return False
        found, asked = (self.advice.tools.find(each.tool) for each in (first.call, self.advice.asked))
        authored = asked is not None and asked.tool.name in AUTHORED
        return found is not None and found.is_mutation and not authored

    @property
    def idle(self) -> bool:
        """Whether the hints say nothing that a model could use: no tool, no warning, nothing missing."""
        given = self.advice.answer["agentHints"]
        return self.silent and not given.get("warnings") and not given["contextNeeded"]

    @property
    def fails(self) -> bool:
        """Whether the next call is not suggested where it could be, or a tool where none should be."""
        return (self.then is Then.FLOW and not self.hit) or (self.then is Then.NONE and not self.silent)

    @property
    def silent(self) -> bool:
        """Whether no tool is suggested."""
        return not self.advice.calls


def tasks(opened: RobotGateway) -> list[Task]:
    """Return the tasks whose tools can all be had."""
    scripted = [task_of(each) for each in load("tasks.json", opened.folder)]
    return [
        task
        for task in scripted
        if all(opened.tools.find(step.request.tool) is not None for step in task.steps)
    ]


async def perform(robot: Robot, task: Task) -> list[StepTaken]:
    """Make the calls of a task; each must succeed."""
    user = task.user or await robot.new_user()
    advices: list[Advice] = []
    for step in task.steps:
        advice = await robot.advice(_resolved(step.request, advices), user)
        assert advice.error is None, f"{task.name}: {step.request.tool} gave {advice.error}"
        advices.append(advice)
    made = tuple(advice.asked for advice in advices)
    following = [*made[1:], None]
    return [
        StepTaken(task=task.name, then=step.then, advice=advice, next=after, made=made)
        for step, advice, after in zip(task.steps, advices, following, strict=True)
    ]


def task_of(entry: Mapping[str, Any]) -> Task:
    """Read a task of the corpus."""
    steps = tuple(Step(Request(name, arguments), Then(then)) for name, arguments, then in entry["steps"])
    return Task(entry["task"], steps, entry.get("user"))


def _resolved(request: Request, advices: Sequence[Advice]) -> Request:
    return Request(request.tool, {key: _value(each, advices) for key, each in request.arguments.items()})


def _value(value: Any, advices: Sequence[Advice]) -> Any:
    if isinstance(value, list):
        return [_value(each, advices) for each in cast("list[Any]", value)]
    if not isinstance(value, str) or not value.startswith(_REFERENCE):
        return value
    number, *path = value.removeprefix(_REFERENCE).split(".")
    found: Any = advices[int(number)].answer["data"]
    for step in path:
        # A list is indexed by a number, an object by a name.
        found = found[int(step) if step.isdecimal() else step]
    return found
