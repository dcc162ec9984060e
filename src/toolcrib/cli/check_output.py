"""How a check is shown: what falls short and what is for a person, a line for each tool, or all as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from toolcrib.cli.check_findings import FAILING, CheckFinding, for_a_person, of_tool
from toolcrib.cli.output import Row, say, show_json, show_table

if TYPE_CHECKING:
    from toolcrib.testing.module_check import CheckedTool

_COLUMNS = ("", "Where", "What to do")


def show(
    found: Sequence[CheckFinding],
    tools: "Sequence[CheckedTool]" = (),
    *,
    everything: bool = False,
    as_json: bool,
) -> int:
    """Print what was found and return the exit code."""
    findings = [*found, *(each for tool in tools for each in of_tool(tool))]
    failed = any(each.level in FAILING for each in findings)
    if as_json:
        judged = {
            tool.tool.name: {item: asdict(each) for item, each in tool.judged.items()} for tool in tools
        }
        show_json({"ok": not failed, "findings": [asdict(each) for each in findings], "tools": judged})
        return int(failed)
    rows = list(_every_item(found, tools) if everything else _open_items(findings, tools))
    if rows:
        show_table(_COLUMNS, rows)
    _sum_up([tool for tool in tools if everything or tool.standing == "own"])
    if not failed:
        warned = any(each.level == "warning" for each in findings)
        say("Nothing falls short; see the warnings above." if warned else "Nothing falls short.")
    return int(failed)


def _sum_up(tools: "Sequence[CheckedTool]") -> None:
    from toolcrib.sdk.checklist import tally

    for tool in tools:
        say(f"{tool.tool.name}: {tally(tool.judged)}")


def _open_items(findings: Sequence[CheckFinding], tools: "Sequence[CheckedTool]") -> Iterator[Row]:
    yield from map(_row, findings)
    yield from (_row(each) for tool in tools for each in for_a_person(tool))


def _every_item(found: Sequence[CheckFinding], tools: "Sequence[CheckedTool]") -> Iterator[Row]:
    yield from map(_row, found)
    for tool in tools:
        name = tool.tool.name
        yield from ((each.verdict, f"{name} {item}", each.message) for item, each in tool.judged.items())
        yield from (("short", f"{name} {each.rule}", each.message) for each in tool.more)


def _row(found: CheckFinding) -> Row:
    """A thing about a tool is placed by its item, as one about a config is by its path."""
    about_a_tool = found.level in ("short", "person") or found.rule == "published"
    return found.level, f"{found.where} {found.rule}" if about_a_tool else found.where, found.message
