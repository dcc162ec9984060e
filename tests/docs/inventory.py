"""What must be documented, read from the code; nothing here is a list kept by hand."""

import logging
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from json import loads
from typing import Any

import anyio
import click

import toolcrib as package
from toolcrib import sources
from toolcrib.cli.commands import toolcrib
from toolcrib.crib import Crib
from toolcrib.http import Route
from toolcrib.model import Caller, Origin, Tool
from toolcrib.observe import CallEntry, Redactor
from toolcrib.observe.call_entry import CallStart
from toolcrib.observe.lines import FastLines, LoggedArguments, call_event, record_event
from toolcrib.sdk import Options
from toolcrib.server import GatewayApp


@dataclass(frozen=True)
class Found:
    """What a running gateway reports about itself."""

    routes: tuple[Route, ...]
    steps: tuple[str, ...]
    rules: tuple[str, ...]
    tools: tuple[Tool, ...]
    metrics: tuple[str, ...]
    calls: tuple[str, ...]
    usage: tuple[str, ...]
    status: dict[str, Any]
    explanation: tuple[str, ...]
    hints: tuple[str, ...]
    metadata: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """One command and its options."""

    path: str
    summary: str
    usage: str
    options: tuple[tuple[str, str], ...]


@cache
def found() -> Found:
    """Run a gateway with the demo, call a tool, and read its reports."""
    return anyio.run(_ask)


async def _ask() -> Found:
    async with Crib(env={}, demo=True) as crib:
        result = await crib.call("add-numbers", {"numbers": [1, 2]})
        console = crib.runtime.console
        calls, usage = await console.calls(), await console.usage()
        assert result.hints is not None
        assert result.metadata is not None
        return Found(
            routes=GatewayApp(crib.runtime).router.routes,
            steps=tuple(type(step).__name__.lower() for step in console.steps),
            rules=tuple(rule.name for rule in console.policy.rules),
            tools=crib.runtime.gateway.tools(crib.caller()),
            metrics=tuple(_families(console.metrics().decode())),
            calls=tuple(calls[0]),
            usage=tuple(usage["tools"]["demo:add-numbers"]),
            status=console.status(),
            explanation=tuple(crib.explain("add-numbers")),
            hints=tuple(result.hints.as_json()),
            metadata=tuple(result.metadata.as_json()),
        )


def _families(metrics: str) -> Iterator[str]:
    for line in metrics.splitlines():
        if line.startswith("# TYPE toolcrib_"):
            yield line.split()[2]


def steps() -> tuple[str, ...]:
    """Return the names of the steps in build order."""
    return found().steps


def source_kinds() -> tuple[str, ...]:
    """Name the kinds of sources: one module each."""
    return tuple(module.name for module in pkgutil.iter_modules(sources.__path__))


def tool_options() -> tuple[str, ...]:
    """Return the options of `@tool`."""
    return tuple(Options.__annotations__)


def log_fields() -> tuple[str, ...]:
    """Name every field a line of the log can have."""
    tool = Tool(name="demo:x", source="demo")
    call = CallEntry("id", tool, Caller(id="key:x"), Origin(), None, False, 0.0, 0.0)
    raised = ValueError("for the record")
    caught = (ValueError, raised, None)
    record = logging.LogRecord("toolcrib", logging.ERROR, "x.py", 1, "said", (), caught, sinfo="stack")
    begun = CallStart("id", tool, Caller(id="key:x"), Origin(), {}, 0.0)
    start = loads(FastLines(Redactor(), LoggedArguments(Redactor())).start(begun))
    keys = (*start, *call_event(call, Redactor()), *record_event(record, Redactor()))
    return tuple(dict.fromkeys(keys))


def packages() -> tuple[str, ...]:
    """Return the modules and packages of Toolcrib."""
    return tuple(module.name for module in pkgutil.iter_modules(package.__path__))


@cache
def commands() -> tuple[Command, ...]:
    """Return all commands of the command line."""
    return tuple(_walk(toolcrib, click.Context(toolcrib, info_name="toolcrib")))


def _walk(command: click.Command, context: click.Context) -> Iterator[Command]:
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield Command(
        context.command_path, command.get_short_help_str(200), usage, tuple(_options(command, context))
    )
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _walk(inner, click.Context(inner, info_name=name, parent=context))


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            yield record[0], " ".join(record[1].split())


def permissions(routes: Sequence[Route]) -> set[str]:
    """Return the permissions: those in the table of routes and those in its summaries."""
    words = {word.strip(";:.,()") for route in routes for word in route.summary.split()}
    return {route.needs for route in routes if route.needs} | {
        word for word in words if word.startswith("crib:")
    }
