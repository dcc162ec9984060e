"""`toolcrib call`: parse arguments and call one tool."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import click
import orjson

from toolcrib.cli.backend import (
    Backend,
    CallerView,
    Target,
    json_option,
    with_backend,
    with_target,
    with_view,
)
from toolcrib.cli.error_output import DEBUG_VARIABLE
from toolcrib.cli.output import ProgressBar, print_error, print_line, print_note, show_json, show_value
from toolcrib.model import Json, JsonObject

# --- A tool's arguments as people type them: a JSON object, or `key=value` pairs read as its schema says ---

_PAIR = re.compile(r"([^=\s{\[\"][^=\s]*)=(.*)", re.DOTALL)
_ARGUMENT_SYNTAX = "write them as one JSON object, or as key=value"
_MAX_SCHEMA_DEPTH = 8
_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "array": list,
}

Pair = tuple[str, str]


def parse_arguments(given: Sequence[str]) -> JsonObject | tuple[Pair, ...]:
    """Return the object that was given, or the pairs; `-` reads the object from standard input."""
    if not given:
        return {}
    text = sys.stdin.read() if list(given) == ["-"] else given[0]
    if len(given) == 1 and (given[0] == "-" or text.lstrip().startswith(("{", "["))):
        return _parse_object(text)
    pairs = [_PAIR.fullmatch(each) for each in given]
    for each, pair in zip(given, pairs, strict=True):
        if pair is None:
            raise click.UsageError(f"{each[:80]!r} is no argument: {_ARGUMENT_SYNTAX}")
    return tuple((pair[1], pair[2]) for pair in pairs if pair is not None)


def _parse_object(text: str) -> JsonObject:
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise click.UsageError(f"the arguments are not JSON ({error}); {_ARGUMENT_SYNTAX}") from None
    if not isinstance(value, dict):
        raise click.UsageError(f"the arguments are not a JSON object; {_ARGUMENT_SYNTAX}")
    return cast("JsonObject", value)


def coerce_pairs(pairs: Sequence[Pair], schema: JsonObject) -> JsonObject:
    """Give every text the type its schema wants; what does not fit stays text, for the tool to refuse."""
    properties = _mapping(schema.get("properties"))
    arguments: dict[str, Any] = {}
    for name, text in pairs:
        wanted = tuple(_alternatives(_mapping(properties.get(name)), schema))
        if name not in arguments:
            arguments[name] = _coerce_argument(text, wanted, schema)
        elif _accepts(wanted, "array") and isinstance(arguments[name], list):
            arguments[name] += _coerce_items(text, wanted, schema)
        else:
            raise click.UsageError(f"{name} is given twice")
    return arguments


def _coerce_argument(text: str, wanted: Sequence[JsonObject], root: JsonObject) -> Json:
    if not _accepts(wanted, "array") or _accepts(wanted, "string"):
        return _coerce_value(text, wanted)
    return _coerce_items(text, wanted, root)


def _coerce_items(text: str, wanted: Sequence[JsonObject], root: JsonObject) -> list[Json]:
    """Read a whole list, or one thing that is to be in it."""
    whole = _json_or_text(text)
    if isinstance(whole, list):
        return cast("list[Json]", whole)
    lists = (_mapping(each.get("items")) for each in wanted if "array" in _types(each))
    return [_coerce_value(text, [each for items in lists for each in _alternatives(items, root)])]


def _coerce_value(text: str, wanted: Sequence[JsonObject]) -> Json:
    for chosen in (value for each in wanted for value in _choices(each)):
        if text == (chosen if isinstance(chosen, str) else orjson.dumps(chosen).decode()):
            return chosen
    if _accepts(wanted, "string"):
        return text
    kinds = {kind for each in wanted for kind in _types(each)} or set(_PYTHON_TYPES)
    value = _json_or_text(text)
    fits = any(isinstance(value, _PYTHON_TYPES[kind]) for kind in kinds if kind in _PYTHON_TYPES)
    # Python counts True as a number; JSON does not.
    if isinstance(value, bool) and "boolean" not in kinds:
        fits = False
    return value if fits else text


def _json_or_text(text: str) -> Json:
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def _accepts(wanted: Sequence[JsonObject], kind: str) -> bool:
    return any(kind in _types(each) for each in wanted)


def _types(schema: JsonObject) -> tuple[str, ...]:
    said = schema.get("type", ())
    return (said,) if isinstance(said, str) else tuple(said)


def _choices(schema: JsonObject) -> tuple[Json, ...]:
    return (*schema.get("enum", ()), *((schema["const"],) if "const" in schema else ()))


def _alternatives(schema: JsonObject, root: JsonObject, depth: int = 0) -> Iterator[JsonObject]:
    """Walk through every schema a value may satisfy: references followed, unions taken apart."""
    yield schema
    if depth >= _MAX_SCHEMA_DEPTH:
        return
    nested = [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
    if "$ref" in schema:
        nested.append(_resolve_pointer(str(schema["$ref"]), root))
    for each in nested:
        yield from _alternatives(_mapping(each), root, depth + 1)


def _resolve_pointer(pointer: str, root: JsonObject) -> Json:
    found: Json = root
    for part in pointer.removeprefix("#").strip("/").split("/"):
        found = _mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
    return found


def _mapping(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


# --- `toolcrib call`: one call, its progress and its result ---


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
    target: Target,
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
    given = parse_arguments(arguments)

    async def work(backend: Backend) -> JsonObject:
        ready = given if isinstance(given, Mapping) else await _coerce_for_tool(backend, name, given, view)
        with ProgressBar() as meter:
            return await backend.call(
                name, ready, view, timeout=timeout, idempotency_key=idempotency_key, on_progress=meter.show
            )

    result = with_backend(target, work, lasting=idempotency_key is not None)
    if as_json:
        show_json(result)
    elif not result["success"]:
        _show_error(result["error"], local=target.url is None)
    elif "inputRequired" in result:
        _show_questions(result)
    else:
        _show(result)
    return 0 if result["success"] and "inputRequired" not in result else 1


async def _coerce_for_tool(
    backend: Backend, name: str, pairs: Sequence[tuple[str, str]], view: CallerView
) -> JsonObject:
    tool = await backend.tool(name, view)
    return coerce_pairs(pairs, {} if tool is None else tool["inputSchema"])


def _show(result: JsonObject) -> None:
    """Print what can be said, then what came back, unless that is the same."""
    value: Any = result.get("data")
    if value is None:
        value = result["content"]
    if result["message"] and result["message"] != value:
        print_line(result["message"])
    show_value(value)


def _show_questions(result: JsonObject) -> None:
    """Print what the tool wants to know before it goes on."""
    print_line(result["message"])
    show_value(result["inputRequired"]["questions"])
    print_error("the tool asks before it goes on; answer it over MCP or REST, see docs/questions.md")


def _show_error(error: JsonObject, *, local: bool) -> None:
    where = f" (at {error['path']})" if error.get("path") else ""
    print_error(f"{error['code']}: {error['message']}{where}")
    if local and error["code"] == "HANDLER_ERROR":
        print_note(f"{DEBUG_VARIABLE}=1 shows what it raised")
