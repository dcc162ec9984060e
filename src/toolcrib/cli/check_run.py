"""The checks of `toolcrib check`: loads tools, collects findings and prints the report."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import anyio
import click

from toolcrib.cli.backend import Backend, CallerView, Target, with_backend
from toolcrib.cli.local_backend import IN_MEMORY, has_store, read_document, silenced_log, with_overlay
from toolcrib.cli.output import Row, print_line, show_json, show_table
from toolcrib.config import ConfigError, ConfigFault, Document, default_document
from toolcrib.errors import ToolcribError
from toolcrib.formats import PROVIDERS
from toolcrib.interfaces import Loss
from toolcrib.model import Deprecation, Example, Family, JsonObject, RateLimit, Tool
from toolcrib.sdk.checklist import MIN_TIMED_CALLS, judge
from toolcrib.sdk.evidence import ToolEvidence
from toolcrib.sources.functions import ModuleProblem
from toolcrib.testing.module_check import CheckedTool, ModuleReport, ToolOwnership, check_module, find_module

if TYPE_CHECKING:
    from toolcrib.interfaces import AppRecord
    from toolcrib.sdk.published import CompatibilityBreach

# --- Tool definitions from the REST API of a running gateway ---


def tool_from_json(declared: JsonObject, family: Family) -> Tool:
    """Return the tool that the REST API describes; it is trusted to be well-formed."""
    mark = f"[MCP:{declared['source']}] "
    return Tool(
        name=declared["names"]["qualified"],
        source=declared["source"],
        family=family,
        description=str(declared["description"]).removeprefix(mark),
        input_schema=declared["inputSchema"],
        output_schema=declared.get("outputSchema"),
        category=declared["category"],
        response_time=declared["responseTime"],
        version=declared["version"],
        permissions=frozenset(declared["permissions"]),
        tags=tuple(declared["tags"]),
        cache_ttl=declared.get("cacheTTL"),
        idempotent=declared["idempotent"],
        examples=tuple(
            Example(description=each["description"], params=each["params"], expected=each["expectedResult"])
            for each in declared["examples"]
        ),
        aliases=tuple(declared.get("aliases", ())),
        rate_limit=_rate_limit(declared.get("rateLimit")),
        deprecated=_deprecation(declared.get("deprecated")),
        degraded=bool(declared.get("degraded")),
    )


def _rate_limit(declared: object) -> RateLimit | None:
    if not isinstance(declared, Mapping):
        return None
    limit = cast("Mapping[str, Any]", declared)
    return RateLimit(max_calls=limit["maxCalls"], window_ms=limit["windowMs"])


def _deprecation(declared: object) -> Deprecation | None:
    if not isinstance(declared, Mapping):
        return None
    deprecated = cast("Mapping[str, Any]", declared)
    return Deprecation(
        since=deprecated["since"],
        replacement=deprecated["replacement"],
        removal_date=deprecated["removalDate"],
        announced=deprecated.get("announced"),
    )


# --- Findings: config errors, withheld tools, failed checklist items ---

Level = Literal["fault", "short", "warning", "person"]
FAILING_LEVELS = ("fault", "short")
_HEALTHY_STATES = ("up", "asleep")


@dataclass(frozen=True, kw_only=True)
class CheckFinding:
    """One finding. Levels `fault` and `short` fail the check, `warning` and `person` do not."""

    level: Level
    where: str
    message: str
    rule: str
    line: int | None = None


def config_findings(config: str | None) -> tuple[Document | None, list[CheckFinding]]:
    """Check a config file; the document is None if it has errors."""
    try:
        document = anyio.run(with_overlay, read_document(config))
    except ConfigError as error:
        return None, [_fault_finding(each, "fault") for each in error.faults]
    except ToolcribError as error:
        return None, [CheckFinding(level="fault", where="store", message=str(error), rule="store")]
    return document, [_fault_finding(each, "warning") for each in document.warnings]


def stored_app_findings(document: Document) -> list[CheckFinding]:
    """Return the apps in the store whose address is refused, or would be if it were set now."""
    from toolcrib.config.open_store import open_store_of
    from toolcrib.runtime.convert import rules_of

    async def read() -> "Sequence[AppRecord]":
        store = await open_store_of(document, os.environ)
        try:
            return await store.apps.all()
        finally:
            await store.close()

    rules, apps = rules_of(document), anyio.run(read) if has_store(document) else ()
    judged = ((app, rules.remark(app.public_url, app.url_giver)) for app in apps if app.public_url)
    return [
        CheckFinding(
            level="warning", where=f"apps.{app.package}", message=f"its publicUrl {remark}", rule="address"
        )
        for app, remark in judged
        if remark is not None
    ]


def _fault_finding(fault: ConfigFault, level: Level) -> CheckFinding:
    line = None if fault.position is None else fault.position.line
    position = fault.file if line is None else f"{fault.file}:{line}"
    where = " ".join(part for part in (position, fault.path) if part)
    return CheckFinding(level=level, where=where, message=fault.message, rule="config", line=line)


def status_findings(status: JsonObject) -> list[CheckFinding]:
    """Return the problems in a gateway's status."""
    withheld = [
        CheckFinding(level="fault", where=each["name"], message=each["reason"], rule="withheld")
        for each in status["withheld"]
    ]
    shadowed = [
        CheckFinding(level="warning", where=each["name"], message=each["reason"], rule="flat_name")
        for each in status.get("shadowed", ())
    ]
    down = [
        CheckFinding(
            level="fault", where=each["id"], message=each["lastError"] or each["state"], rule="source"
        )
        for each in status["sources"]
        if each["state"] not in _HEALTHY_STATES
    ]
    warnings = [
        CheckFinding(level="warning", where="config", message=each, rule="config")
        for each in status["warnings"]
    ]
    return [*down, *withheld, *shadowed, *warnings]


def degraded_findings(tools: Iterable[JsonObject]) -> Iterator[CheckFinding]:
    """Yield a warning per source that is down while its tools are still listed."""
    lost: dict[str, list[str]] = {}
    for tool in tools:
        if tool.get("degraded"):
            lost.setdefault(tool["source"], []).append(tool["names"]["qualified"])
    for source, names in lost.items():
        message = f"listed, but cannot be called until {source} is up: {', '.join(names)}"
        yield CheckFinding(level="warning", where=source, message=message, rule="degraded")


def compatibility_findings(source: str, breaches: "Sequence[CompatibilityBreach]") -> Iterator[CheckFinding]:
    """Yield the incompatible changes against the published definitions."""
    for each in breaches:
        yield CheckFinding(
            level=each.level, where=f"{source}:{each.tool}", message=each.message, rule="published"
        )


def tool_findings(checked: "CheckedTool") -> Iterator[CheckFinding]:
    """Yield the failed items of a tool; for a tool that others define, one warning that lists them."""
    name, short = checked.tool.name, list(checked.shortfalls())
    if checked.ownership != "foreign":
        yield from (CheckFinding(level="short", where=name, message=fix, rule=rule) for rule, fix in short)
    elif short:
        rules = ", ".join(dict.fromkeys(rule for rule, _ in short))
        message = (
            f"could be improved in {rules}: change the definition, or use `overrides`; --all shows details"
        )
        yield CheckFinding(level="warning", where=name, message=message, rule="checklist")


def human_findings(checked: "CheckedTool") -> Iterator[CheckFinding]:
    """Yield the items of a tool that need human review."""
    for item, each in checked.judgements.items():
        if each.verdict == "person" and checked.ownership == "own":
            yield CheckFinding(level="person", where=checked.tool.name, message=each.message, rule=item)


# --- Output ---

_FINDING_COLUMNS = ("", "Where", "What to do")


def show(
    found: Sequence[CheckFinding],
    tools: "Sequence[CheckedTool]" = (),
    *,
    everything: bool = False,
    as_json: bool,
) -> int:
    """Print the findings and return the exit status."""
    findings = [*found, *(each for tool in tools for each in tool_findings(tool))]
    failed = any(each.level in FAILING_LEVELS for each in findings)
    if as_json:
        judged = {
            tool.tool.name: {item: asdict(each) for item, each in tool.judgements.items()} for tool in tools
        }
        show_json({"ok": not failed, "findings": [asdict(each) for each in findings], "tools": judged})
        return int(failed)
    rows = list(_all_items(found, tools) if everything else _open_items(findings, tools))
    if rows:
        show_table(_FINDING_COLUMNS, rows)
    _show_summary([tool for tool in tools if everything or tool.ownership == "own"])
    if not failed:
        warned = any(each.level == "warning" for each in findings)
        print_line("All checks pass, with warnings (see above)." if warned else "All checks pass.")
    return int(failed)


def _show_summary(tools: "Sequence[CheckedTool]") -> None:
    from toolcrib.sdk.checklist import tally

    for tool in tools:
        print_line(f"{tool.tool.name}: {tally(tool.judgements)}")


def _open_items(findings: Sequence[CheckFinding], tools: "Sequence[CheckedTool]") -> Iterator[Row]:
    yield from map(_row, findings)
    yield from (_row(each) for tool in tools for each in human_findings(tool))


def _all_items(found: Sequence[CheckFinding], tools: "Sequence[CheckedTool]") -> Iterator[Row]:
    yield from map(_row, found)
    for tool in tools:
        name = tool.tool.name
        yield from ((each.verdict, f"{name} {item}", each.message) for item, each in tool.judgements.items())
        yield from (("short", f"{name} {each.rule}", each.message) for each in tool.findings)


def _row(found: CheckFinding) -> Row:
    """A thing about a tool is placed by its item, as one about a config is by its path."""
    about_a_tool = found.level in ("short", "person") or found.rule == "published"
    return found.level, f"{found.where} {found.rule}" if about_a_tool else found.where, found.message


# --- What is checked: the config and its gateway, a running gateway, a module ---


@dataclass(frozen=True)
class CheckRun:
    """One run of checks: its options, and the findings so far."""

    run_mutations: bool = False
    user: str | None = None
    found: list[CheckFinding] = field(default_factory=list[CheckFinding])
    tools: list[CheckedTool] = field(default_factory=list[CheckedTool])
    _reports: dict[str, ModuleReport] = field(default_factory=dict[str, ModuleReport])
    """Report by module name, so that no module is run twice."""

    def check_config(self, target: Target) -> None:
        """Check the config, the modules in it, and the gateway built from it, with a store in memory."""
        document, found = config_findings(target.config)
        self.found.extend(found)
        if document is None:
            return
        self.found.extend(stored_app_findings(document))
        folder = Path.cwd() if document.source is None else document.source.parent.resolve()
        with silenced_log(document):
            reports = [self._module(each, folder, where="functions") for each in document.functions]
            if None in reports:
                return
            modules = {each.module.source for each in reports if each is not None}
            self._check_gateway(document, modules, demo=target.demo)

    def check_module(self, module: str) -> ModuleReport | None:
        """Check one module, unless it was already checked with the config; None if it cannot be loaded."""
        with silenced_log(default_document({})):
            return self._module(module, None, where=module)

    def check_running(self, target: Target) -> None:
        """Check the status of a running gateway, and its tools and their durations against the checklist."""

        async def ask(backend: Backend) -> tuple[JsonObject, list[JsonObject], JsonObject]:
            return (
                await backend.status(),
                await backend.tools(CallerView(user=self.user)),
                await backend.usage(),
            )

        self._add_running(*with_backend(target, ask))

    def _add_running(self, status: JsonObject, tools: list[JsonObject], usage: JsonObject) -> None:
        self.found.extend((*status_findings(status), *degraded_findings(tools)))
        families = {each["id"]: each["family"] for each in status["sources"]}
        for each in tools:
            # In the status all apps are one source; in the list each tool's source is its app.
            tool = tool_from_json(each, families.get(each["source"], "app"))
            used = usage["tools"].get(tool.name, {"calls": 0})
            p95 = used["p95"] if used["calls"] >= MIN_TIMED_CALLS else None
            self._judge(tool, "running" if tool.family == "function" else "foreign", p95)

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
        self.found.extend(compatibility_findings(module.source, report.breaches))
        return report

    def _check_gateway(self, document: Document, modules: set[str], *, demo: bool) -> None:
        from toolcrib.crib import Crib

        async def ask() -> tuple[JsonObject, tuple[Tool, ...]]:
            async with Crib(document=replace(document, store=IN_MEMORY), demo=demo) as crib:
                return crib.runtime.console.status(), crib.runtime.gateway.tools(crib.caller())

        status, tools = anyio.run(ask)
        known = {str(each) for each in document.warnings}
        self.found.extend(each for each in status_findings(status) if each.message not in known)
        for tool in tools:
            if tool.source not in modules:
                self._judge(tool, "foreign")

    def _judge(self, tool: Tool, ownership: ToolOwnership, p95: float | None = None) -> None:
        """Judge a tool without running it: by its definition and its p95."""
        judged = judge(tool, ToolEvidence(listed=True, p95=p95))
        self.tools.append(CheckedTool(tool=tool, judgements=judged, ownership=ownership))


# --- Schema conversion for a provider: the constraints that are lost ---

_LOSS_COLUMNS = ("", "Where", "Lost constraint")


@dataclass(frozen=True, kw_only=True)
class FormatReport:
    """How one tool is declared to a provider."""

    name: str
    losses: tuple[Loss, ...] = ()
    reason: str | None = None
    """Why it cannot be declared, if so."""

    @property
    def exact(self) -> bool:
        """Whether the declaration accepts exactly what the tool accepts."""
        return self.reason is None and not self.losses

    def rows(self) -> Iterator[Row]:
        """Yield table rows: one per lost constraint."""
        if self.reason is not None:
            yield "withheld", self.name, self.reason
        elif not self.losses:
            yield "exact", self.name, ""
        for each in self.losses if self.reason is None else ():
            yield "lost", f"{self.name} {each.path} {each.keyword}", each.message

    def as_json(self) -> JsonObject:
        """Return the JSON object for `--json`."""
        shown = {
            "declared": self.reason is None,
            "exact": self.exact,
            "losses": list(map(asdict, self.losses)),
        }
        return shown if self.reason is None else {**shown, "reason": self.reason}


def show_format_report(target: Target, module: str | None, format: str, *, as_json: bool) -> int:
    """Print how the tools of a target or a module convert for a provider; 1 if one cannot be declared."""
    if format not in PROVIDERS:
        raise click.UsageError(f"--format must be one of {', '.join(PROVIDERS)}")

    async def ask(backend: Backend) -> tuple[FormatReport, ...]:
        return await _format_reports(backend, format)

    found = with_backend(target, ask) if module is None else _module_format_reports(module, format)
    if as_json:
        tools = {each.name: each.as_json() for each in found}
        ok = all(each.reason is None for each in found)
        show_json({"ok": ok, "format": format, "tools": tools})
    else:
        _show(found, format)
    return int(any(each.reason is not None for each in found))


async def _format_reports(
    backend: Backend, format: str, source: str | None = None
) -> tuple[FormatReport, ...]:
    listing = await backend.listing(CallerView(), format=format)
    withheld = {each["name"]: each["reason"] for each in listing.get("withheld", ())}
    tools = [tool_from_json(each, "function") for each in await backend.tools(CallerView())]
    return tuple(
        FormatReport(name=each.name, losses=PROVIDERS[format].losses(each), reason=withheld.get(each.name))
        for each in tools
        if source in (None, each.source)
    )


def _module_format_reports(named: str, format: str) -> tuple[FormatReport, ...]:
    """Run a module in its own gateway, and return how its tools are declared to a provider."""
    import anyio

    from toolcrib.cli.local_backend import LocalBackend, silenced_log
    from toolcrib.config import default_document
    from toolcrib.crib import Crib
    from toolcrib.testing.module_check import find_module

    document = replace(default_document({}), store=IN_MEMORY)

    async def run() -> tuple[FormatReport, ...]:
        async with Crib(document=replace(document, functions=(module.name,))) as crib:
            return await _format_reports(LocalBackend(crib), format, module.source)

    with silenced_log(document):
        module = find_module(named)
        return anyio.run(run)


def _show(found: Sequence[FormatReport], format: str) -> None:
    show_table(_LOSS_COLUMNS, [row for each in found for row in each.rows()])
    exact = sum(each.exact for each in found)
    print_line(f"{format}: {exact} of {len(found)} tools are declared without loss.")
    withheld = sum(each.reason is not None for each in found)
    if withheld:
        print_line(f"{withheld} cannot be declared.")
