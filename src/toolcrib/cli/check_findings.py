"""What a check finds: faults of the config, tools that are held back, definitions that fall short."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import anyio

from toolcrib.cli.config_document import has_store, read_document, with_overlay
from toolcrib.config import ConfigError, ConfigFault, Document
from toolcrib.errors import ToolcribError
from toolcrib.model import JsonObject

if TYPE_CHECKING:
    from toolcrib.interfaces import AppRecord
    from toolcrib.sdk.published import CompatibilityBreach
    from toolcrib.testing.module_check import CheckedTool

Level = Literal["fault", "short", "warning", "person"]
FAILING = ("fault", "short")
_FINE = ("up", "asleep")


@dataclass(frozen=True, kw_only=True)
class CheckFinding:
    """One thing to know. A fault or a shortfall fails the check; a warning or a question does not."""

    level: Level
    where: str
    message: str
    rule: str
    line: int | None = None


def of_config(config: str | None) -> tuple[Document | None, list[CheckFinding]]:
    """Check a config file; the document is there if it can be used."""
    try:
        document = anyio.run(with_overlay, read_document(config))
    except ConfigError as error:
        return None, [_of_fault(each, "fault") for each in error.faults]
    except ToolcribError as error:
        return None, [CheckFinding(level="fault", where="store", message=str(error), rule="store")]
    return document, [_of_fault(each, "warning") for each in document.warnings]


def of_stored_apps(document: Document) -> list[CheckFinding]:
    """Name the apps in the store whose address is refused, or would be if it were given now."""
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


def _of_fault(fault: ConfigFault, level: Level) -> CheckFinding:
    line = None if fault.place is None else fault.place.line
    place = fault.file if line is None else f"{fault.file}:{line}"
    where = " ".join(part for part in (place, fault.path) if part)
    return CheckFinding(level=level, where=where, message=fault.message, rule="config", line=line)


def of_status(status: JsonObject) -> list[CheckFinding]:
    """Read what a running gateway says is wrong with it."""
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
        if each["state"] not in _FINE
    ]
    said = [
        CheckFinding(level="warning", where="config", message=each, rule="config")
        for each in status["warnings"]
    ]
    return [*down, *withheld, *shadowed, *said]


def of_degraded(tools: Iterable[JsonObject]) -> Iterator[CheckFinding]:
    """Name the tools that are listed though their source is down."""
    lost: dict[str, list[str]] = {}
    for tool in tools:
        if tool.get("degraded"):
            lost.setdefault(tool["source"], []).append(tool["names"]["qualified"])
    for source, names in lost.items():
        said = f"listed, and not to be called until {source} is up: {', '.join(names)}"
        yield CheckFinding(level="warning", where=source, message=said, rule="degraded")


def of_breaches(source: str, breaches: "Sequence[CompatibilityBreach]") -> Iterator[CheckFinding]:
    """Tell what has changed against what was published."""
    for each in breaches:
        yield CheckFinding(
            level=each.level, where=f"{source}:{each.tool}", message=each.message, rule="published"
        )


def of_tool(checked: "CheckedTool") -> Iterator[CheckFinding]:
    """Tell what falls short in a tool; in one line and as a warning where somebody else defines it."""
    name, short = checked.tool.name, list(checked.shortfalls())
    if checked.standing != "foreign":
        yield from (CheckFinding(level="short", where=name, message=said, rule=rule) for rule, said in short)
    elif short:
        rules = ", ".join(dict.fromkeys(rule for rule, _ in short))
        said = (
            f"could be better in {rules}: mend it where it is defined, or with `overrides`; --all tells more"
        )
        yield CheckFinding(level="warning", where=name, message=said, rule="checklist")


def for_a_person(checked: "CheckedTool") -> Iterator[CheckFinding]:
    """Tell what no program can judge."""
    for item, each in checked.judged.items():
        if each.verdict == "person" and checked.standing == "own":
            yield CheckFinding(level="person", where=checked.tool.name, message=each.message, rule=item)
