"""Holds the tools of a module to the checklist, and to what was published of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import anyio

from toolcrib.model import Tool
from toolcrib.sdk import Finding
from toolcrib.sdk.checklist import beside, judge
from toolcrib.sdk.checklist_rules import Judgement
from toolcrib.sdk.published import CompatibilityBreach, InvalidPublishedFile, compare, publish, read, write
from toolcrib.testing.example_runs import try_out
from toolcrib.testing.modules import ToolModule, find_module, named_in_tests

Standing = Literal["own", "running", "foreign"]
"""Whose it is: the author's own, at hand to be tried out; served by a gateway elsewhere; somebody else's.

What falls short in a foreign one is told and fails nothing."""


@dataclass(frozen=True, kw_only=True)
class CheckedTool:
    """One tool: what each item of the list comes to, and what else is wrong with it."""

    tool: Tool
    judged: Mapping[str, Judgement]
    more: tuple[Finding, ...] = ()
    standing: Standing = "own"

    def shortfalls(self) -> Iterator[tuple[str, str]]:
        """What falls short: the item or the rule, and what to do."""
        yield from ((item, each.message) for item, each in self.judged.items() if each.verdict == "short")
        yield from ((each.rule, each.message) for each in self.more)


@dataclass(frozen=True, kw_only=True)
class ModuleReport:
    """What a check of one module found."""

    module: ToolModule
    tools: tuple[CheckedTool, ...]
    breaches: tuple[CompatibilityBreach, ...] = ()
    """Changes against what was published."""

    def failures(self) -> Iterator[str]:
        """Everything that fails the check, a line each."""
        for each in self.tools:
            if each.standing == "own":
                yield from (f"{each.tool.name}: {item}: {said}" for item, said in each.shortfalls())
        for breach in self.breaches:
            if breach.level == "short":
                yield f"{self.module.source}:{breach.tool}: published: {breach.message}"


def check_module(module: ToolModule, *, run_mutations: bool = False, user: str | None = None) -> ModuleReport:
    """Check the tools of a module; what may change something is only run with `run_mutations`."""
    seen = anyio.run(lambda: try_out(module.tools, run_mutations=run_mutations, user=user))
    tests = named_in_tests(module)
    tools = tuple(tool.bind(module.source) for tool in module.tools)
    checked = tuple(
        CheckedTool(
            tool=tool,
            judged=judge(tool, replace(seen[tool.local], test=tests.get(tool.local, ""))),
            more=tuple(beside(tool)),
            standing="own" if tool.family == "function" else "foreign",
        )
        for tool in tools
    )
    return ModuleReport(module=module, tools=checked, breaches=tuple(_breaches(module, tools)))


def publish_module(report: ModuleReport) -> Path | None:
    """Keep the definitions of a module as published; None where it has no file, or breaks what was."""
    path = report.module.published
    if path is None or any(each.level == "short" for each in report.breaches):
        return None
    kept = path.read_text(encoding="utf-8") if path.exists() else write({})
    tools = publish(read(kept), (each.tool for each in report.tools))
    path.write_text(write(tools), encoding="utf-8")
    return path


def check_tools(*modules: str, run_mutations: bool = False, user: str | None = None) -> None:
    """Fail the test it is called in, with a line for each thing that falls short in the tools of modules.

    A module is named as Python does, or by its file. `user` is who the examples are run for.
    """
    __tracebackhide__ = True
    failures = [
        line
        for module in modules
        for line in check_module(find_module(module), run_mutations=run_mutations, user=user).failures()
    ]
    if failures:
        raise AssertionError("\n".join(("the checklist is not met:", *failures)))


def _breaches(module: ToolModule, tools: tuple[Tool, ...]) -> Iterator[CompatibilityBreach]:
    path = module.published
    if path is None or not path.exists():
        return
    try:
        kept = read(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InvalidPublishedFile) as error:
        yield CompatibilityBreach("short", path.name, f"cannot be read: {error}")
        return
    yield from compare(kept, tools, datetime.now(UTC).date())
