"""What a check finds: faults of the config, tools that are held back, definitions that fall short."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import anyio

from toolcrib.cli.document import IN_MEMORY, read_document, with_overlay
from toolcrib.cli.quiet import quiet
from toolcrib.cli.screen import say, show_json, show_table
from toolcrib.config import ConfigError, Document, Fault
from toolcrib.errors import ToolcribError
from toolcrib.model import JsonObject
from toolcrib.sdk import AnyTool, Registry
from toolcrib.sources.functions import ModuleProblem, load_module, source_id

Level = Literal["fault", "short", "warning"]
_FINE = ("up", "asleep")


@dataclass(frozen=True, kw_only=True)
class Found:
    """One thing to know. A fault or a shortfall fails the check, a warning does not."""

    level: Level
    where: str
    message: str
    rule: str
    line: int | None = None


def of_config(config: str | None) -> tuple[Document | None, list[Found]]:
    """Check a config file; the document is there if it can be used."""
    try:
        document = anyio.run(with_overlay, read_document(config))
    except ConfigError as error:
        return None, [_of_fault(each, "fault") for each in error.faults]
    except ToolcribError as error:
        return None, [Found(level="fault", where="store", message=str(error), rule="store")]
    return document, [_of_fault(each, "warning") for each in document.warnings]


def of_gateway(document: Document, *, demo: bool) -> list[Found]:
    """Build the gateway of a document, leaving nothing behind, and ask it how it does."""
    from toolcrib.cli.local import LocalDesk
    from toolcrib.crib import Crib

    async def ask() -> JsonObject:
        async with Crib(document=replace(document, store=IN_MEMORY), demo=demo) as crib:
            return await LocalDesk(crib).status()

    try:
        with quiet(document):
            status = anyio.run(ask)
    except ModuleProblem as error:
        return [Found(level="fault", where="functions", message=str(error), rule="module")]
    known = {str(each) for each in document.warnings}
    found = [each for each in of_status(status) if each.message not in known]
    folder = Path.cwd() if document.source is None else document.source.parent.resolve()
    return [*found, *(each for module in document.functions for each in of_module(module, folder=folder))]


def of_status(status: JsonObject) -> list[Found]:
    """Read what a running gateway says is wrong with it."""
    withheld = [
        Found(level="fault", where=each["name"], message=each["reason"], rule="withheld")
        for each in status["withheld"]
    ]
    down = [
        Found(level="fault", where=each["id"], message=each["lastError"] or each["state"], rule="source")
        for each in status["sources"]
        if each["state"] not in _FINE
    ]
    said = [
        Found(level="warning", where="config", message=each, rule="config") for each in status["warnings"]
    ]
    return [*down, *withheld, *said]


def of_module(module: str, *, folder: Path | None = None) -> list[Found]:
    """Run the checklist over the tools of a module, named as Python does or by its file."""
    file = Path(module)
    if file.suffix == ".py":
        module, folder = file.stem, file.parent.resolve()
    try:
        tools = load_module(module, folder=folder or Path.cwd())
    except ModuleProblem as error:
        return [Found(level="fault", where=module, message=str(error), rule="module")]
    return list(_of_tools(source_id(module), tools))


def _of_tools(source: str, tools: Iterable[AnyTool]) -> Iterable[Found]:
    registry = Registry()
    for tool in tools:
        for each in registry.validate(tool):
            yield Found(level="short", where=f"{source}:{tool.name}", message=each.message, rule=each.rule)


def _of_fault(fault: Fault, level: Level) -> Found:
    line = None if fault.place is None else fault.place.line
    place = fault.file if line is None else f"{fault.file}:{line}"
    where = " ".join(part for part in (place, fault.path) if part)
    return Found(level=level, where=where, message=fault.message, rule="config", line=line)


def show(found: Sequence[Found], *, as_json: bool) -> int:
    """Print what was found and return the exit code."""
    failed = any(each.level != "warning" for each in found)
    if as_json:
        show_json({"ok": not failed, "findings": [asdict(each) for each in found]})
        return int(failed)
    if found:
        show_table(("", "Where", "What"), [(each.level, each.where, each.message) for each in found])
    if not failed:
        say("Nothing falls short." if not found else "Nothing falls short; see the warnings above.")
    return int(failed)
