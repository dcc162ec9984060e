"""`toolcrib call`: one call, its progress and its result."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from toolcrib.cli.arguments import fitted, read
from toolcrib.cli.backend import Backend, with_backend
from toolcrib.cli.error_output import DEBUG
from toolcrib.cli.output import complain, hint, say, show_json, show_value
from toolcrib.cli.progress_bar import ProgressBar
from toolcrib.cli.target import CallerView, Target, json_option, with_target, with_view
from toolcrib.model import JsonObject


@click.command("call")
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[JSON | KEY=VALUE]...")
@with_target
@with_view
@click.option(
    "--timeout",
    type=click.FloatRange(0, 300, min_open=True),
    metavar="S",
    help="Wait no longer than S seconds.",
)
@click.option(
    "--idempotency-key",
    metavar="KEY",
    help="Carry out a call that changes something once, however often it is made with this KEY.",
)
@json_option
def command(
    place: Target,
    view: CallerView,
    *,
    name: str,
    arguments: Sequence[str],
    timeout: float | None,
    idempotency_key: str | None,
    as_json: bool,
) -> int:
    """Call the tool NAME and print its result.

    Arguments are one JSON object ('-' reads it from standard input), or KEY=VALUE pairs: numbers, true and
    false as the tool's schema says, lists and objects as JSON. The KEY of a list may come again.
    """
    given = read(arguments)

    async def work(desk: Backend) -> JsonObject:
        ready = given if isinstance(given, Mapping) else await _fitted(desk, name, given, view)
        with ProgressBar() as meter:
            return await desk.call(
                name, ready, view, timeout=timeout, idempotency_key=idempotency_key, on_progress=meter.show
            )

    result = with_backend(place, work, lasting=idempotency_key is not None)
    if as_json:
        show_json(result)
    elif not result["success"]:
        _show_error(result["error"], local=place.url is None)
    elif "inputRequired" in result:
        _show_questions(result)
    else:
        _show(result)
    return 0 if result["success"] and "inputRequired" not in result else 1


async def _fitted(desk: Backend, name: str, pairs: Sequence[tuple[str, str]], view: CallerView) -> JsonObject:
    tool = await desk.tool(name, view)
    return fitted(pairs, {} if tool is None else tool["inputSchema"])


def _show(result: JsonObject) -> None:
    """Print what can be said, then what came back, unless that is the same."""
    value: Any = result.get("data")
    if value is None:
        value = result["content"]
    if result["message"] and result["message"] != value:
        say(result["message"])
    show_value(value)


def _show_questions(result: JsonObject) -> None:
    """Print what the tool wants to know before it goes on."""
    say(result["message"])
    show_value(result["inputRequired"]["questions"])
    complain("the tool asks before it goes on; answer it over MCP or REST, see docs/questions.md")


def _show_error(error: JsonObject, *, local: bool) -> None:
    where = f" (at {error['path']})" if error.get("path") else ""
    complain(f"{error['code']}: {error['message']}{where}")
    if local and error["code"] == "HANDLER_ERROR":
        hint(f"{DEBUG}=1 shows what it raised")
