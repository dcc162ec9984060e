"""LangChain tools become ours: name, schema and bound call are kept, and LangChain is never imported."""

from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, Unpack, cast
from uuid import uuid4

from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from toolcrib.errors import Failed
from toolcrib.model import Json, JsonObject, Result, Tool
from toolcrib.sdk.checks import ToolDefinitionError, refuse
from toolcrib.sdk.context import ToolContext
from toolcrib.sdk.decorator import AnyTool, FunctionTool
from toolcrib.sdk.langchain_results import answer_of, complaint, is_a
from toolcrib.sdk.options import Options, fields_of
from toolcrib.sdk.signature import Signature, misfit, own

SECONDS = 10.0
"""How long one try may take where nothing is said: most of these tools ask somebody over the network."""
CONFIGURABLE = "toolcrib"
"""Where in the `configurable` of its RunnableConfig a tool finds the ToolContext."""

_METADATA = "langchain/metadata"
_CLAIMS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""What the MCP adapters put into a tool's metadata of what its server says."""
_THEIRS = "langchain_core.tools"


class LangChainTool(Protocol):
    """What every tool of LangChain's has; the rest is looked for."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def description(self) -> str:
        """What it is for."""
        ...

    def invoke(self, input: Any, config: Any = None) -> Any:
        """Carry out a call in this thread."""
        ...

    def ainvoke(self, input: Any, config: Any = None) -> Awaitable[Any]:
        """Carry out a call on the event loop."""
        ...


class _Inputs(NamedTuple):
    """What a tool takes: as its callers see it, and as it is given."""

    schema: JsonObject
    hidden: frozenset[str]
    """Arguments that are none of the caller's: LangChain fills them in."""
    call_ids: frozenset[str]
    """Those among them that take the id of the call."""
    validate: Callable[[Any], Any] | None
    """The tool's own check, where it has one beyond its schema."""


def langchain_tool(tool: LangChainTool, **options: Unpack[Options]) -> AnyTool:
    """Make a tool of one of LangChain's. What the options say goes over what it says of itself."""
    name = options.get("name") or name_of(tool)
    try:
        inputs = _inputs(tool)
        fields = fields_of(options)
    except ToolDefinitionError as error:
        raise ToolDefinitionError(f"tool {name}: {error}") from error
    annotations, meta = _said(tool)
    fields["tags"] = fields.get("tags") or tuple(getattr(tool, "tags", None) or ())
    fields.setdefault("title", annotations.get("title"))
    if options.get("timeout") is None and options.get("response_time") is None:
        fields["timeout"] = SECONDS
    definition = Tool(
        name=f":{name}",
        source="",
        family="langchain",
        description=options.get("description") or tool.description or "",
        input_schema=inputs.schema,
        annotations=annotations,
        meta=meta,
        **fields,
    )
    refuse(definition)
    signature = Signature(schema=inputs.schema, convert=_converter(inputs), context="context")
    return FunctionTool(definition, _caller(tool, inputs), signature)


def name_of(tool: LangChainTool) -> str:
    """Return what a tool is called: its `lc_name` where that is one, else its `name`."""
    own_name = getattr(tool, "lc_name", None)
    name: object = own_name if isinstance(own_name, str) and own_name else getattr(tool, "name", None)
    if not isinstance(name, str) or not callable(getattr(tool, "ainvoke", None)):
        kind = type(tool).__name__
        raise ToolDefinitionError(f"{kind} is no tool of LangChain's: give one with a name and ainvoke")
    return name


def named(tool: LangChainTool, prefix: str, options: Options) -> Options:
    """Return the options for one tool of a list. A name would fit only one of them."""
    if "name" in options:
        raise ToolDefinitionError(
            "one name does not fit a whole list: give prefix, or register each by itself"
        )
    return {**options, "name": f"{prefix}_{name_of(tool)}"} if prefix else options


# --- what it takes ---


def _inputs(tool: LangChainTool) -> _Inputs:
    model = getattr(tool, "args_schema", None)
    schema = _schema(tool, model)
    fields = _fields(model)
    marked = frozenset[str](getattr(tool, "_injected_args_keys", ()))
    hidden = (fields.keys() | marked) - schema["properties"].keys()
    call_ids = frozenset(name for name in hidden & fields.keys() if _takes_call_id(fields[name]))
    missed = sorted(name for name in (hidden & fields.keys()) - call_ids if _is_required(fields[name]))
    if missed:
        raise ToolDefinitionError(
            f"{', '.join(missed)} must be filled in by a running agent, and there is none here:"
            " give it a default, or wrap the tool in a function that knows it"
        )
    others = {name for each in hidden & fields.keys() for name in _other_names(fields[each])}
    hidden |= others - schema["properties"].keys()
    validate = getattr(model, "model_validate", None) or getattr(model, "parse_obj", None)
    return _Inputs(schema, frozenset(hidden), call_ids, validate)


def _schema(tool: LangChainTool, model: Any) -> dict[str, Any]:
    """The JSON Schema a model is shown, without what LangChain fills in itself."""
    schema = _json_schema(getattr(tool, "tool_call_schema", model))
    # Their name and description stand in the definition already.
    found = {key: value for key, value in schema.items() if key not in ("title", "description")}
    found.setdefault("type", "object")
    found["properties"] = dict(found.get("properties") or {})
    return found if model is not None else _bare(tool, found)


def _bare(tool: LangChainTool, schema: dict[str, Any]) -> dict[str, Any]:
    """A tool without a schema of its own is called with its arguments as they come: others would break it."""
    named: JsonObject = getattr(tool, "args", None) or {}
    if named.keys() != schema["properties"].keys():
        # One over a function of one text: its signature, which says nothing of that text, is not its own.
        schema = {"type": "object", "properties": dict(named), "required": list(named)}
    return schema if "kwargs" in schema["properties"] else {**schema, "additionalProperties": False}


def _json_schema(shown: Any) -> JsonObject:
    """A dict is one already; a model of either age of pydantic knows its own."""
    if shown is None or isinstance(shown, Mapping):
        return cast("JsonObject", shown or {})
    make = getattr(shown, "model_json_schema", None) or getattr(shown, "schema", None)
    if make is None:
        raise ToolDefinitionError("its args_schema is neither a pydantic model nor a JSON Schema")
    try:
        return cast("JsonObject", make())
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise ToolDefinitionError(f"a type in its arguments has no JSON form: {reason}") from error


def _fields(model: Any) -> Mapping[str, Any]:
    """The fields of a model of either age; a JSON Schema has none that we could ask."""
    newer = getattr(model, "model_fields", None)
    return cast("Mapping[str, Any]", getattr(model, "__fields__", {}) if newer is None else newer)


def _is_required(field: Any) -> bool:
    ask = getattr(field, "is_required", None)
    return bool(ask() if ask is not None else getattr(field, "required", False))


def _other_names(field: Any) -> Iterator[str]:
    """What else a field can be given under: an alias, several, or the first step on the way to it."""
    given = getattr(field, "validation_alias", None)
    for name in (getattr(field, "alias", None), *(getattr(given, "choices", None) or [given])):
        yield from ([name] if isinstance(name, str) else getattr(name, "path", ())[:1])


def _takes_call_id(field: Any) -> bool:
    marks: list[Any] = getattr(field, "metadata", None) or []
    return any(is_a(mark, "InjectedToolCallId") for mark in marks)


def _said(tool: LangChainTool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What its metadata says: the claims of an MCP server, and all else as vendor data."""
    given: JsonObject = to_jsonable_python(getattr(tool, "metadata", None) or {}, fallback=str)
    claims = {key: given[key] for key in _CLAIMS if given.get(key) is not None}
    passed: Json = given.get("_meta")
    meta = dict(cast("JsonObject", passed)) if isinstance(passed, Mapping) else {}
    rest = {key: value for key, value in given.items() if key not in (*_CLAIMS, "_meta")}
    return claims, {**meta, _METADATA: rest} if rest else meta


# --- how it is called ---


def _converter(inputs: _Inputs) -> Callable[[JsonObject], dict[str, Any]]:
    """Nobody but LangChain sets what it fills in: a caller that names such an argument is not heard."""
    filled = dict.fromkeys(inputs.call_ids, "call")

    def convert(arguments: JsonObject) -> dict[str, Any]:
        given = {name: own(each) for name, each in arguments.items() if name not in inputs.hidden}
        if inputs.validate is not None:
            _validate(inputs.validate, {**given, **filled})
        return {"arguments": given}

    return convert


def _validate(validate: Callable[[Any], Any], arguments: dict[str, Any]) -> None:
    """Ask the tool's own schema first: LangChain takes what fails inside the tool for a wrong argument."""
    try:
        validate(arguments)
    except ValueError as error:
        faults = getattr(error, "errors", None)
        if faults is None:
            raise
        fault = faults()[0]
        raise misfit(fault["loc"], fault["msg"]) from None


def _caller(tool: LangChainTool, inputs: _Inputs) -> Callable[..., Any]:
    whole = _answers_whole(tool) or bool(inputs.call_ids)

    def asked(arguments: dict[str, Any], context: ToolContext) -> tuple[dict[str, Any], dict[str, Any]]:
        config = {"configurable": {CONFIGURABLE: context}}
        if not whole and arguments.get("type") != "tool_call":
            return arguments, config
        return {"type": "tool_call", "id": uuid4().hex, "name": tool.name, "args": arguments}, config

    async def acall(arguments: dict[str, Any], context: ToolContext) -> Result:
        with _failures():
            return answer_of(await tool.ainvoke(*asked(arguments, context)))

    def call(arguments: dict[str, Any], context: ToolContext) -> Result:
        with _failures():
            return answer_of(tool.invoke(*asked(arguments, context)))

    return call if _is_blocking(tool) else acall


def _answers_whole(tool: LangChainTool) -> bool:
    """Whether a plain call would lose something: the artifact, or that an error was made into an answer."""
    with_artifact = getattr(tool, "response_format", "content") == "content_and_artifact"
    return bool(
        with_artifact
        or getattr(tool, "handle_tool_error", False)
        or getattr(tool, "handle_validation_error", False)
    )


def _is_blocking(tool: LangChainTool) -> bool:
    """Whether all it has is a plain function.

    LangChain would run it among the event loop's few threads, where one that hangs keeps others from
    looking up addresses; it runs in our own, which are bounded for each source.
    """
    if getattr(tool, "coroutine", None) is not None or not callable(getattr(tool, "invoke", None)):
        return False
    ways = (getattr(type(tool), name, None) for name in ("ainvoke", "_arun"))
    return all(getattr(way, "__module__", "").startswith(_THEIRS) for way in ways)


@contextmanager
def _failures() -> Generator[None]:
    """What a tool says of its own failure is for the caller; all else it raises is the operator's."""
    try:
        yield
    except Exception as error:  # LangChain's own are known by name: nothing of it is imported to catch them
        if not is_a(error, "ToolException"):
            raise
        raise Failed("TOOL_FAILED", complaint(str(error))) from None
