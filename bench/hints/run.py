"""Runs the robot: every fault, then every task, then an error with each code of the table."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from bench.hints.faults import faulty_calls
from bench.hints.findings import Findings, gathered
from bench.hints.gateway import RobotGateway, open_small, open_whole
from bench.hints.judge import Advice
from bench.hints.own_tools import FAILING_TOOLS
from bench.hints.robot import FollowedFault, Robot
from bench.hints.tasks import StepTaken, perform, tasks
from bench.hints.toolset import Request
from bench.hints.valid_calls import valid_calls
from toolcrib.errors import CODES


async def run_robot(folder: Path) -> Findings:
    """Run everything, over all tools that can be had here; each corpus has a gateway of its own."""
    notes: list[str] = []
    for name in ("faults", "tasks"):
        (folder / name).mkdir()
    followed = await follow_faults(open_whole(folder / "faults"), notes)
    taken = await perform_tasks(open_whole(folder / "tasks"))
    return gathered(followed, taken, await fail_with_every_code(folder), notes)


async def follow_faults(
    opening: AbstractAsyncContextManager[RobotGateway], notes: list[str]
) -> list[FollowedFault]:
    """Make every faulty call, and note which tools could not take part."""
    async with opening as opened:
        robot = Robot(opened)
        calls, failing = await robot.working(valid_calls(opened))
        notes += opened.notes
        if failing:
            notes.append(f"no faults are made from calls that fail here: {', '.join(failing)}")
        return await robot.follow(faulty_calls(calls, opened.tools))


async def perform_tasks(
    opening: AbstractAsyncContextManager[RobotGateway],
) -> dict[str, list[StepTaken]]:
    """Perform every task in a gateway that has seen no faults."""
    async with opening as opened:
        robot = Robot(opened)
        return {task.name: await perform(robot, task) for task in tasks(opened)}


async def fail_with_every_code(folder: Path) -> list[Advice]:
    """Have a reading and a changing tool fail with every code, retryable or not."""
    async with open_small(folder, FAILING_TOOLS) as opened:
        robot = Robot(opened)
        user = await robot.new_user()
        return [
            await robot.advice(Request(tool, {"code": code, "retryable": retryable}), user)
            for tool in ("tools:fail-reading", "tools:fail-changing")
            for code in CODES
            for retryable in (True, False)
        ]
