"""Where a check looks: the config and the gateway it makes, a gateway that runs, a module."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from toolcrib.cli.backend import Backend, with_backend
from toolcrib.cli.check_findings import (
    CheckFinding,
    of_breaches,
    of_config,
    of_degraded,
    of_status,
    of_stored_apps,
)
from toolcrib.cli.config_document import IN_MEMORY
from toolcrib.cli.log_silencing import quiet
from toolcrib.cli.target import CallerView, Target
from toolcrib.cli.tool_parsing import tool_of
from toolcrib.config import Document, default_document
from toolcrib.model import JsonObject, Tool
from toolcrib.sdk.checklist import ENOUGH_CALLS, judge
from toolcrib.sdk.evidence import ToolEvidence
from toolcrib.sources.functions import ModuleProblem
from toolcrib.testing.module_check import CheckedTool, ModuleReport, Standing, check_module
from toolcrib.testing.modules import find_module


@dataclass(frozen=True)
class CheckRun:
    """One check: how it is to go about it, and what it has found so far."""

    run_mutations: bool = False
    user: str | None = None
    found: list[CheckFinding] = field(default_factory=list[CheckFinding])
    tools: list[CheckedTool] = field(default_factory=list[CheckedTool])
    _reports: dict[str, ModuleReport] = field(default_factory=dict[str, ModuleReport])
    """What was found of each module, so that none is tried out twice."""

    def at_config(self, place: Target) -> None:
        """Check the config, the modules it names and the gateway it makes, which leaves nothing behind."""
        document, found = of_config(place.config)
        self.found.extend(found)
        if document is None:
            return
        self.found.extend(of_stored_apps(document))
        folder = Path.cwd() if document.source is None else document.source.parent.resolve()
        with quiet(document):
            reports = [self._module(each, folder, where="functions") for each in document.functions]
            if None in reports:
                return
            modules = {each.module.source for each in reports if each is not None}
            self._built(document, modules, demo=place.demo)

    def at_module(self, module: str) -> ModuleReport | None:
        """Check one module, unless the config has brought it in already; None where it cannot be loaded."""
        with quiet(default_document({})):
            return self._module(module, None, where=module)

    def at_running(self, place: Target) -> None:
        """Ask a running gateway how it does, and hold its tools and their times to the checklist."""

        async def ask(desk: Backend) -> tuple[JsonObject, list[JsonObject], JsonObject]:
            return await desk.status(), await desk.tools(CallerView(user=self.user)), await desk.usage()

        self._heard(*with_backend(place, ask))

    def _heard(self, status: JsonObject, tools: list[JsonObject], usage: JsonObject) -> None:
        self.found.extend((*of_status(status), *of_degraded(tools)))
        families = {each["id"]: each["family"] for each in status["sources"]}
        for each in tools:
            # All apps are one source there, and each tool names its app.
            tool = tool_of(each, families.get(each["source"], "app"))
            used = usage["tools"].get(tool.name, {"calls": 0})
            p95 = used["p95"] if used["calls"] >= ENOUGH_CALLS else None
            self._known(tool, "running" if tool.family == "function" else "foreign", p95)

    def _module(self, named: str, folder: Path | None, *, where: str) -> ModuleReport | None:
        try:
            module = find_module(named, folder=folder)
            if module.name in self._reports:
                return self._reports[module.name]
            report = check_module(module, run_mutations=self.run_mutations, user=self.user)
        except ModuleProblem as error:
            if all(each.message != str(error) for each in self.found):
                self.found.append(CheckFinding(level="fault", where=where, message=str(error), rule="module"))
            return None
        self._reports[module.name] = report
        self.tools.extend(report.tools)
        self.found.extend(of_breaches(module.source, report.breaches))
        return report

    def _built(self, document: Document, modules: set[str], *, demo: bool) -> None:
        from toolcrib.crib import Crib

        async def ask() -> tuple[JsonObject, tuple[Tool, ...]]:
            async with Crib(document=replace(document, store=IN_MEMORY), demo=demo) as crib:
                return crib.house.console.status(), crib.house.gateway.tools(crib.caller())

        status, tools = anyio.run(ask)
        known = {str(each) for each in document.warnings}
        self.found.extend(each for each in of_status(status) if each.message not in known)
        for tool in tools:
            if tool.source not in modules:
                self._known(tool, "foreign")

    def _known(self, tool: Tool, standing: Standing, p95: float | None = None) -> None:
        """Judge a tool that is not at hand to be tried out by its definition, and by how it has done."""
        judged = judge(tool, ToolEvidence(listed=True, p95=p95))
        self.tools.append(CheckedTool(tool=tool, judged=judged, standing=standing))
