"""Checks the tools of a module: loads it, runs examples, finds tests, compares published definitions."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Literal

import anyio

from toolcrib.model import Tool
from toolcrib.sdk import AnyTool, Finding
from toolcrib.sdk.checklist import Judgement, extra_findings, judge
from toolcrib.sdk.published import (
    CompatibilityBreach,
    InvalidPublishedFile,
    compare,
    parse_published,
    publish,
    serialize_published,
)
from toolcrib.sources.functions import Functions, ModuleProblem, load_module, source_id
from toolcrib.testing.example_runs import run_examples

# --- Modules: loading, source file, published file and tests ---

_ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_MAX_TEST_FILES = 2_000
_MAX_TEST_FILE_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ToolModule:
    """A loaded module and its tools."""

    name: str
    tools: tuple[AnyTool, ...]
    file: Path | None
    """The source file; None if the module has none."""

    @property
    def source(self) -> str:
        """The source id, which is the namespace of the tool names."""
        return source_id(self.name)

    @property
    def published(self) -> Path | None:
        """Path of the published definitions, next to the module; None if it has no file."""
        if self.file is None:
            return None
        stem = self.file.parent if self.file.stem == "__init__" else self.file.with_suffix("")
        return stem.with_name(f"{stem.name}.published.json")


def find_module(reference: str, *, folder: Path | None = None) -> ToolModule:
    """Load a module by dotted name or file path; a loaded module is reused."""
    name, root = reference, folder or Path.cwd()
    requested: Path | None = None
    if reference.endswith(".py"):
        requested = Path(reference).resolve()
        name, root = _module_name(requested)
    tools = load_module(name, folder=root)
    file = _module_file(name)
    if requested is not None and file != requested:
        other = "another module" if file is None else str(file)
        raise ModuleProblem(f"{reference} cannot be loaded as {name}, which is {other}: rename it")
    Functions(source_id(name), tools)  # raises for tools that a gateway would refuse
    return ToolModule(name=name, tools=tools, file=file)


def _module_name(file: Path) -> tuple[str, Path]:
    """Return the module name of a file and the folder to import it from."""
    for name in [*sys.modules]:
        if (
            name != "__main__"
            and name.rpartition(".")[2] in (file.stem, file.parent.name)
            and _module_file(name) == file
        ):
            return name, file.parent
    parts, folder = [file.stem] if file.stem != "__init__" else [], file.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def _module_file(name: str) -> Path | None:
    path = getattr(sys.modules.get(name), "__file__", None)
    return Path(path).resolve() if isinstance(path, str) else None


def find_tests(module: ToolModule) -> dict[str, str]:
    """Return the first test file that names a tool, by tool; tools without such a file are left out."""
    found: dict[str, str] = {}
    if module.file is None:
        return found
    module_name = re.escape(module.name.rpartition(".")[2])
    module_pattern = re.compile(rf"check_tools\(\s*[\"'][^\"']*\b{module_name}\b")
    patterns = {tool.name: re.compile(rf"(?<![\w-]){_name_pattern(tool)}(?![\w-])") for tool in module.tools}
    root = _project_root(module.file.parent)
    for file in islice(_test_files(module.file, root), _MAX_TEST_FILES):
        text = _test_text(file)
        tests_whole_module = module_pattern.search(text) is not None
        for name, pattern in patterns.items():
            if name not in found and (tests_whole_module or pattern.search(text)):
                found[name] = file.relative_to(root).as_posix()
        if len(found) == len(patterns):
            break
    return found


def _name_pattern(tool: AnyTool) -> str:
    function = getattr(tool.function, "__name__", tool.name)
    return f"(?:{re.escape(tool.name)}|{re.escape(function)})"


def _project_root(folder: Path) -> Path:
    """Return the project folder, or the given one if no project marker is found."""
    for each in (folder, *folder.parents):
        if any((each / marker).exists() for marker in _ROOT_MARKERS):
            return each
    return folder


def _test_files(file: Path, root: Path) -> Iterator[Path]:
    """Yield test files in the module's folder, and in the test folders up to the project folder."""
    folder = file.parent
    yield from sorted(_test_files_of(folder.iterdir()))
    for each in (folder, *folder.parents):
        for name in ("tests", "test"):
            yield from sorted(_test_files_of((each / name).rglob("*.py")))
        if each == root:
            return


def _test_files_of(files: Iterable[Path]) -> Iterator[Path]:
    return (each for each in files if each.match("test_*.py") or each.match("*_test.py"))


def _test_text(file: Path) -> str:
    try:
        return (
            file.read_text(encoding="utf-8", errors="replace")
            if file.stat().st_size <= _MAX_TEST_FILE_BYTES
            else ""
        )
    except OSError:
        return ""


# --- Checks: the checklist and the published definitions ---

ToolOwnership = Literal["own", "running", "foreign"]
"""The author's own tool, whose examples can be run; one of a running gateway; or one of a third party.

Shortcomings of third-party tools are reported, but do not fail the check."""


@dataclass(frozen=True, kw_only=True)
class CheckedTool:
    """A tool with the verdicts of the checklist items and further findings."""

    tool: Tool
    judgements: Mapping[str, Judgement]
    findings: tuple[Finding, ...] = ()
    ownership: ToolOwnership = "own"

    def shortfalls(self) -> Iterator[tuple[str, str]]:
        """Yield each item or rule that is not met, with advice."""
        yield from ((item, each.message) for item, each in self.judgements.items() if each.verdict == "short")
        yield from ((each.rule, each.message) for each in self.findings)


@dataclass(frozen=True, kw_only=True)
class ModuleReport:
    """Result of the check of one module."""

    module: ToolModule
    tools: tuple[CheckedTool, ...]
    breaches: tuple[CompatibilityBreach, ...] = ()
    """Incompatible changes since the published definitions."""

    def failures(self) -> Iterator[str]:
        """Yield one line for each reason to fail the check."""
        for each in self.tools:
            if each.ownership == "own":
                yield from (f"{each.tool.name}: {item}: {message}" for item, message in each.shortfalls())
        for breach in self.breaches:
            if breach.level == "short":
                yield f"{self.module.source}:{breach.tool}: published: {breach.message}"


def check_module(module: ToolModule, *, run_mutations: bool = False, user: str | None = None) -> ModuleReport:
    """Check the tools of a module; examples of mutating tools run only with `run_mutations`."""
    evidence = anyio.run(lambda: run_examples(module.tools, run_mutations=run_mutations, user=user))
    tests = find_tests(module)
    tools = tuple(tool.bind(module.source) for tool in module.tools)
    checked = tuple(
        CheckedTool(
            tool=tool,
            judgements=judge(tool, replace(evidence[tool.local], test_file=tests.get(tool.local, ""))),
            findings=tuple(extra_findings(tool)),
            ownership="own" if tool.family == "function" else "foreign",
        )
        for tool in tools
    )
    return ModuleReport(module=module, tools=checked, breaches=tuple(_breaches(module, tools)))


def publish_module(report: ModuleReport) -> Path | None:
    """Write the published definitions and return their path; None without a file or with breaking changes."""
    path = report.module.published
    if path is None or any(each.level == "short" for each in report.breaches):
        return None
    published_text = path.read_text(encoding="utf-8") if path.exists() else serialize_published({})
    tools = publish(parse_published(published_text), (each.tool for each in report.tools))
    path.write_text(serialize_published(tools), encoding="utf-8")
    return path


def check_tools(*modules: str, run_mutations: bool = False, user: str | None = None) -> None:
    """Fail the calling test with one line for each shortcoming of the modules' tools.

    Modules are given by dotted name or file path. `user` is the user for whom the examples are run.
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
        published = parse_published(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InvalidPublishedFile) as error:
        yield CompatibilityBreach("short", path.name, f"cannot be read: {error}")
        return
    yield from compare(published, tools, datetime.now(UTC).date())
