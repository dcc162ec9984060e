"""`toolcrib call`: parses arguments and calls one tool."""

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

# --- Arguments on the command line: a JSON object, or `key=value` pairs converted by the tool's schema ---

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
    """Parse a JSON object or KEY=VALUE pairs; `-` reads the object from standard input."""
    if not given:
        return {}
    text = sys.stdin.read() if list(given) == ["-"] else given[0]
    if len(given) == 1 and (given[0] == "-" or text.lstrip().startswith(("{", "["))):
        return _parse_object(text)
    pairs = [_PAIR.fullmatch(each) for each in given]
    for each, pair in zip(given, pairs, strict=True):
        if pair is None:
            raise click.UsageError(f"{each[:80]!r} is not an argument: {_ARGUMENT_SYNTAX}")
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
    """Convert values to the types in the schema; one that does not fit stays text and fails validation."""
    properties = _mapping(schema.get("properties"))
    arguments: dict[str, Any] = {}
    for name, text in pairs:
        schemas = tuple(_alternatives(_mapping(properties.get(name)), schema))
        if name not in arguments:
            arguments[name] = _coerce_argument(text, schemas, schema)
        elif _accepts(schemas, "array") and isinstance(arguments[name], list):
            arguments[name] += _coerce_items(text, schemas, schema)
        else:
            raise click.UsageError(f"{name} is given twice")
    return arguments


def _coerce_argument(text: str, schemas: Sequence[JsonObject], root: JsonObject) -> Json:
    if not _accepts(schemas, "array") or _accepts(schemas, "string"):
        return _coerce_value(text, schemas)
    return _coerce_items(text, schemas, root)


def _coerce_items(text: str, schemas: Sequence[JsonObject], root: JsonObject) -> list[Json]:
    """Parse a JSON list, or a single item."""
    whole = _json_or_text(text)
    if isinstance(whole, list):
        return cast("list[Json]", whole)
    lists = (_mapping(each.get("items")) for each in schemas if "array" in _types(each))
    return [_coerce_value(text, [each for items in lists for each in _alternatives(items, root)])]


def _coerce_value(text: str, schemas: Sequence[JsonObject]) -> Json:
    for chosen in (value for each in schemas for value in _choices(each)):
        if text == (chosen if isinstance(chosen, str) else orjson.dumps(chosen).decode()):
            return chosen
    if _accepts(schemas, "string"):
        return text
    type_names = {type_name for each in schemas for type_name in _types(each)} or set(_PYTHON_TYPES)
    value = _json_or_text(text)
    fits = any(
        isinstance(value, _PYTHON_TYPES[type_name]) for type_name in type_names if type_name in _PYTHON_TYPES
    )
    # In Python a bool is an int; in JSON it is not.
    if isinstance(value, bool) and "boolean" not in type_names:
        fits = False
    return value if fits else text


def _json_or_text(text: str) -> Json:
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def _accepts(schemas: Sequence[JsonObject], type_name: str) -> bool:
    return any(type_name in _types(each) for each in schemas)


def _types(schema: JsonObject) -> tuple[str, ...]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _choices(schema: JsonObject) -> tuple[Json, ...]:
    return (*schema.get("enum", ()), *((schema["const"],) if "const" in schema else ()))


def _alternatives(schema: JsonObject, root: JsonObject, depth: int = 0) -> Iterator[JsonObject]:
    """Yield every subschema that a value may match: references resolved, unions expanded."""
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


# --- The command ---


@click.command("call")
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[JSON | KEY=VALUE]...")
@with_target
@with_view
@click.option(
    "--timeout",
    type=click.FloatRange(0, 300, min_open=True),
    metavar="S",
    help="Cancel the call after S seconds.",
)
@click.option(
    "--idempotency-key",
    metavar="KEY",
    help="Execute a call with side effects only once, however often it is repeated with this KEY.",
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

    Arguments are one JSON object ('-' reads it from standard input), or KEY=VALUE pairs, which are converted
    to the types in the tool's schema. Write lists and objects as JSON; for a list, KEY can also be repeated.
    """
    given = parse_arguments(arguments)

    async def work(backend: Backend) -> JsonObject:
        converted = (
            given if isinstance(given, Mapping) else await _coerce_for_tool(backend, name, given, view)
        )
        with ProgressBar() as bar:
            return await backend.call(
                name, converted, view, timeout=timeout, idempotency_key=idempotency_key, on_progress=bar.show
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
    """Print the message, then the data unless it is the same."""
    value: Any = result.get("data")
    if value is None:
        value = result["content"]
    if result["message"] and result["message"] != value:
        print_line(result["message"])
    show_value(value)


def _show_questions(result: JsonObject) -> None:
    """Print the questions that the tool asks before it continues."""
    print_line(result["message"])
    show_value(result["inputRequired"]["questions"])
    print_error("the tool asks for input; answer it over MCP or REST, see docs/questions.md")


def _show_error(error: JsonObject, *, local: bool) -> None:
    where = f" (at {error['path']})" if error.get("path") else ""
    print_error(f"{error['code']}: {error['message']}{where}")
    if local and error["code"] == "HANDLER_ERROR":
        print_note(f"Set {DEBUG_VARIABLE}=1 to see the exception.")
