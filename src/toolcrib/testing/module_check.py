"""Loads a module's tools and checks them."""

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

# --- Finds what a check needs of a module: its tools, its file, the tests near it, what was published of it
# ---

_ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_MAX_TEST_FILES = 2_000
_MAX_TEST_FILE_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ToolModule:
    """A module that was loaded for its tools."""

    name: str
    tools: tuple[AnyTool, ...]
    file: Path | None
    """Where it stands; None where it has no file."""

    @property
    def source(self) -> str:
        """The first half of its tools' names."""
        return source_id(self.name)

    @property
    def published(self) -> Path | None:
        """The file that keeps what was published of it, beside it."""
        if self.file is None:
            return None
        stem = self.file.parent if self.file.stem == "__init__" else self.file.with_suffix("")
        return stem.with_name(f"{stem.name}.published.json")


def find_module(named: str, *, folder: Path | None = None) -> ToolModule:
    """Load a module, named as Python does or by its file; one that is loaded already is not loaded again."""
    name, root = named, folder or Path.cwd()
    wanted: Path | None = None
    if named.endswith(".py"):
        wanted = Path(named).resolve()
        name, root = _module_name(wanted)
    tools = load_module(name, folder=root)
    file = _module_file(name)
    if wanted is not None and file != wanted:
        other = "another module" if file is None else str(file)
        raise ModuleProblem(f"{named} cannot be loaded as {name}, which is {other}: rename it")
    Functions(source_id(name), tools)  # refuses what no gateway would serve
    return ToolModule(name=name, tools=tools, file=file)


def _module_name(file: Path) -> tuple[str, Path]:
    """The name a file has as a module, and the folder from which it has that name."""
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
    said = getattr(sys.modules.get(name), "__file__", None)
    return Path(said).resolve() if isinstance(said, str) else None


def find_tests(module: ToolModule) -> dict[str, str]:
    """Return, for each tool that a test near the module names, the file of the first such test."""
    found: dict[str, str] = {}
    if module.file is None:
        return found
    whole = re.compile(rf"check_tools\(\s*[\"'][^\"']*\b{re.escape(module.name.rpartition('.')[2])}\b")
    words = {tool.name: re.compile(rf"(?<![\w-]){_name_pattern(tool)}(?![\w-])") for tool in module.tools}
    root = _project_root(module.file.parent)
    for file in islice(_test_files(module.file, root), _MAX_TEST_FILES):
        text = _test_text(file)
        everything = whole.search(text) is not None
        for name, word in words.items():
            if name not in found and (everything or word.search(text)):
                found[name] = file.relative_to(root).as_posix()
        if len(found) == len(words):
            break
    return found


def _name_pattern(tool: AnyTool) -> str:
    function = getattr(tool.function, "__name__", tool.name)
    return f"(?:{re.escape(tool.name)}|{re.escape(function)})"


def _project_root(folder: Path) -> Path:
    """The folder of the project, or the module's own where there is no sign of one."""
    return next(
        (each for each in (folder, *folder.parents) if any((each / sign).exists() for sign in _ROOT_MARKERS)),
        folder,
    )


def _test_files(file: Path, root: Path) -> Iterator[Path]:
    """Tests in the module's folder, and in a folder of tests of each folder up to the project's."""
    folder = file.parent
    yield from sorted(_filter_tests(folder.iterdir()))
    for each in (folder, *folder.parents):
        for name in ("tests", "test"):
            yield from sorted(_filter_tests((each / name).rglob("*.py")))
        if each == root:
            return


def _filter_tests(files: Iterable[Path]) -> Iterator[Path]:
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


# --- Holds the tools of a module to the checklist, and to what was published of them ---

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
    seen = anyio.run(lambda: run_examples(module.tools, run_mutations=run_mutations, user=user))
    tests = find_tests(module)
    tools = tuple(tool.bind(module.source) for tool in module.tools)
    checked = tuple(
        CheckedTool(
            tool=tool,
            judged=judge(tool, replace(seen[tool.local], test_file=tests.get(tool.local, ""))),
            more=tuple(extra_findings(tool)),
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
    kept = path.read_text(encoding="utf-8") if path.exists() else serialize_published({})
    tools = publish(parse_published(kept), (each.tool for each in report.tools))
    path.write_text(serialize_published(tools), encoding="utf-8")
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
        kept = parse_published(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InvalidPublishedFile) as error:
        yield CompatibilityBreach("short", path.name, f"cannot be read: {error}")
        return
    yield from compare(kept, tools, datetime.now(UTC).date())
