"""LangChain tools as tools of the gateway."""

from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, Unpack, cast
from urllib.parse import quote
from uuid import uuid4

import orjson
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from toolcrib.errors import Broken, Failed, problem
from toolcrib.model import Json, JsonObject, Result, Tool
from toolcrib.schemas.subschemas import has_too_many_values, too_deep
from toolcrib.sdk.checks import ToolDefinitionError, refuse
from toolcrib.sdk.context import ToolContext
from toolcrib.sdk.decorator import AnyTool, FunctionTool
from toolcrib.sdk.options import Options, fields_of
from toolcrib.sdk.signature import Signature, argument_fault, deep_copy

# --- Results: a value, content blocks, or messages ---

MAX_TOOL_ERROR_CHARS = 2_000
"""Maximum characters of a tool's text in an error message."""

_NO_REASON = "the tool failed without a reason"
_MEDIA_KINDS = {"image": "image", "image_url": "image", "audio": "audio", "file": "file"}
_DEFAULT_MIME_TYPES = {"image": "image/png", "audio": "audio/wav", "file": "application/octet-stream"}
_NESTED_KEYS = ("source", "image_url", "file")
_DATA_KEYS, _MIME_KEYS, _URL_KEYS = ("base64", "data"), ("mime_type", "media_type"), ("url", "file_data")
_STRUCTURED_CONTENT = "structured_content"
"""The only key in an artifact of the MCP adapters: the server's structured content."""


def is_a(value: object, name: str) -> bool:
    """Whether a value is a class of this name or its instance, without importing LangChain."""
    kind = value if isinstance(value, type) else type(value)
    return any(each.__name__ == name for each in kind.__mro__)


def langchain_result(value: object) -> Result:
    """Return the return value of a call as a Result."""
    items = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)
    if items and all(is_a(each, "ToolMessage") for each in items):
        return _messages_result(items)
    if isinstance(value, list) and items and all(_content_block(each) for each in items):
        return _content_result(_blocks(items))
    data = to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="null", fallback=str)
    # A tool without an output schema may return nothing; that is a valid, empty result.
    return Result(data="" if data is None else data)


def tool_error_text(text: str) -> str:
    """Return a tool's error text, truncated for an error message."""
    text = text.strip().encode(errors="replace").decode()
    if len(text) > MAX_TOOL_ERROR_CHARS:
        return f"{text[: MAX_TOOL_ERROR_CHARS - 1]}…"
    return text or _NO_REASON


def _messages_result(messages: Sequence[Any]) -> Result:
    contents = [[each.content] if isinstance(each.content, str) else each.content for each in messages]
    blocks = _blocks([part for content in contents for part in content])
    if any(message.status == "error" for message in messages):
        return Result(problem=problem("TOOL_FAILED", tool_error_text(_joined_text(blocks))), content=blocks)
    data = _artifact_json(messages[0].artifact) if len(messages) == 1 else None
    return _content_result(blocks) if data is None else Result(data=data, content=blocks)


def _artifact_json(artifact: object) -> Json:
    """Return the artifact as JSON; None if it cannot be serialized."""
    if isinstance(artifact, Mapping) and list(cast("JsonObject", artifact)) == [_STRUCTURED_CONTENT]:
        artifact = cast("JsonObject", artifact)[_STRUCTURED_CONTENT]
    try:
        return to_jsonable_python(artifact, bytes_mode="base64", inf_nan_mode="null")
    except ValueError:
        return None


def _content_result(blocks: tuple[JsonObject, ...]) -> Result:
    """Return a result of content blocks, with data derived from their text."""
    if any(block["type"] != "text" for block in blocks):
        return Result(data=list(blocks), content=blocks, structured=False)
    text = _joined_text(blocks)
    data = _parse_json_text(text) if len(blocks) == 1 else text
    # LangChain serializes other values as JSON text; once parsed to data, the text is redundant.
    return Result(data=data, content=blocks if data is text else (), structured=False)


def _parse_json_text(text: str) -> Json:
    """Parse JSON text, within the bounds of results; otherwise return the text."""
    if text[:1] not in ("{", "["):
        return text
    raw = text.encode(errors="replace")
    try:
        value = None if has_too_many_values(raw) else orjson.loads(raw)
    except orjson.JSONDecodeError:
        return text
    return text if value is None or too_deep(value) else value


def _joined_text(blocks: tuple[JsonObject, ...]) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


# --- Content blocks ---


def _blocks(parts: Sequence[Any]) -> tuple[JsonObject, ...]:
    """Convert content to MCP content blocks; empty text is dropped, as model providers refuse it."""
    try:
        blocks = tuple(block for block in map(_block, parts) if block.get("text") != "")
        orjson.dumps(blocks)
    except TypeError as error:  # a lone surrogate, which no frontend can send
        raise Broken("CONTRACT_VIOLATION", "the content must be text that can be encoded as UTF-8") from error
    return blocks


def _block(part: Json) -> JsonObject:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    block = _content_block(part)
    if block is not None:
        return block
    text = orjson.dumps(to_jsonable_python(part, bytes_mode="base64", fallback=str)).decode()
    return {"type": "text", "text": text}


def _content_block(part: object) -> JsonObject | None:
    """Return a part as an MCP content block; None if it is none or has an unknown vendor type."""
    if not isinstance(part, Mapping):
        return None
    fields = cast("JsonObject", part)
    kind, text = fields.get("type"), fields.get("text")
    if kind == "text":
        return {"type": "text", "text": text} if isinstance(text, str) else None
    medium = _MEDIA_KINDS.get(kind) if isinstance(kind, str) else None
    return None if medium is None else _media_block(medium, fields)


def _media_block(kind: str, fields: JsonObject) -> JsonObject | None:
    """Convert an image, audio or file block from any vendor's format."""
    merged: JsonObject = {**_nested_fields(fields), **fields}
    raw, mime, url = (_first_text(merged, *names) for names in (_DATA_KEYS, _MIME_KEYS, _URL_KEYS))
    head, comma, tail = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        raw, mime = tail, mime or head.removeprefix("data:").partition(";")[0]
    if raw:
        name = _first_text(merged, "filename", "name")
        return _embedded_block(kind, raw, mime or _DEFAULT_MIME_TYPES[kind], name)
    if not url:
        return None
    name = kind if url.startswith("data:") else url.rstrip("/").rpartition("/")[2]
    link = {"type": "resource_link", "uri": url, "name": name or url}
    return {**link, "mimeType": mime} if mime else link


def _nested_fields(fields: JsonObject) -> JsonObject:
    """Return the nested object in which some vendors put the fields."""
    inner: Json = next((fields[key] for key in _NESTED_KEYS if fields.get(key)), None)
    if isinstance(inner, str):
        return {"url": inner}
    return cast("JsonObject", inner) if isinstance(inner, Mapping) else {}


def _first_text(fields: JsonObject, *names: str) -> str:
    values = (fields.get(name) for name in names)
    return next((each for each in values if isinstance(each, str) and each), "")


def _embedded_block(kind: str, raw: str, mime: str, name: str) -> JsonObject:
    if kind != "file":
        return {"type": kind, "data": raw, "mimeType": mime}
    blob = {"uri": f"attachment:{quote(name or kind)}", "mimeType": mime, "blob": raw}
    return {"type": "resource", "resource": blob}


# --- Adapter for LangChain tools: reuses their name, schema and call; never imports LangChain ---

LANGCHAIN_TIMEOUT_SECONDS = 10.0
"""Default timeout of one attempt: most of these tools do network I/O."""
CONTEXT_KEY = "toolcrib"
"""Key of the ToolContext in the `configurable` of a tool's RunnableConfig."""

_METADATA_KEY = "langchain/metadata"
_ANNOTATION_KEYS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""Annotations of an MCP server that the MCP adapters copy into a tool's metadata."""
_LANGCHAIN_TOOLS = "langchain_core.tools"


class LangChainTool(Protocol):
    """Interface of every LangChain tool; further attributes are optional."""

    @property
    def name(self) -> str:
        """Name of the tool."""
        ...

    @property
    def description(self) -> str:
        """Description of the tool."""
        ...

    def invoke(self, input: Any, config: Any = None) -> Any:
        """Execute a call in this thread."""
        ...

    def ainvoke(self, input: Any, config: Any = None) -> Awaitable[Any]:
        """Execute a call on the event loop."""
        ...


class _Inputs(NamedTuple):
    """Inputs of a tool: the public schema, and the arguments that LangChain injects."""

    schema: JsonObject
    hidden: frozenset[str]
    """Injected arguments, which LangChain fills in and callers cannot set."""
    call_ids: frozenset[str]
    """Injected arguments that receive the id of the call."""
    validate: Callable[[Any], Any] | None
    """The tool's own validation beyond its schema, if any."""


def langchain_tool(tool: LangChainTool, **options: Unpack[Options]) -> AnyTool:
    """Wrap a LangChain tool. Options override its own metadata."""
    name = options.get("name") or name_of(tool)
    try:
        inputs = _inputs(tool)
        fields = fields_of(options)
    except ToolDefinitionError as error:
        raise ToolDefinitionError(f"tool {name}: {error}") from error
    annotations, meta = _annotations_and_meta(tool)
    fields["tags"] = fields.get("tags") or tuple(getattr(tool, "tags", None) or ())
    fields.setdefault("title", annotations.get("title"))
    if options.get("timeout") is None and options.get("response_time") is None:
        fields["timeout"] = LANGCHAIN_TIMEOUT_SECONDS
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
    return FunctionTool(definition, _handler(tool, inputs), signature)


def name_of(tool: LangChainTool) -> str:
    """Return the name of a tool: its `lc_name` if that is a text, else its `name`."""
    own_name = getattr(tool, "lc_name", None)
    name: object = own_name if isinstance(own_name, str) and own_name else getattr(tool, "name", None)
    if not isinstance(name, str) or not callable(getattr(tool, "ainvoke", None)):
        kind = type(tool).__name__
        raise ToolDefinitionError(f"{kind} is not a LangChain tool: it needs a name and ainvoke")
    return name


def list_options(tool: LangChainTool, prefix: str, options: Options) -> Options:
    """Return the options for one tool of a list; `name` is refused, as it would apply to only one."""
    if "name" in options:
        fix = "use prefix, or register each tool separately"
        raise ToolDefinitionError(f"name cannot apply to a list of tools: {fix}")
    return {**options, "name": f"{prefix}_{name_of(tool)}"} if prefix else options


# --- Inputs ---


def _inputs(tool: LangChainTool) -> _Inputs:
    model = getattr(tool, "args_schema", None)
    schema = _schema(tool, model)
    fields = _model_fields(model)
    injected = frozenset[str](getattr(tool, "_injected_args_keys", ()))
    hidden = (fields.keys() | injected) - schema["properties"].keys()
    call_ids = frozenset(name for name in hidden & fields.keys() if _takes_call_id(fields[name]))
    unfilled = sorted(name for name in (hidden & fields.keys()) - call_ids if _is_required(fields[name]))
    if unfilled:
        raise ToolDefinitionError(
            f"{', '.join(unfilled)} is injected by a running agent, and there is none here:"
            " give it a default, or wrap the tool in a function that provides it"
        )
    aliases = {name for each in hidden & fields.keys() for name in _alias_names(fields[each])}
    hidden |= aliases - schema["properties"].keys()
    validate = getattr(model, "model_validate", None) or getattr(model, "parse_obj", None)
    return _Inputs(schema, frozenset(hidden), call_ids, validate)


def _schema(tool: LangChainTool, model: Any) -> dict[str, Any]:
    """Return the JSON Schema for models, without injected arguments."""
    schema = _json_schema(getattr(tool, "tool_call_schema", model))
    # Title and description are in the definition already.
    plain = {key: value for key, value in schema.items() if key not in ("title", "description")}
    plain.setdefault("type", "object")
    plain["properties"] = dict(plain.get("properties") or {})
    return plain if model is not None else _closed_schema(tool, plain)


def _closed_schema(tool: LangChainTool, schema: dict[str, Any]) -> dict[str, Any]:
    """Close the schema of a tool without `args_schema`: it passes all arguments on, and others would fail."""
    arguments: JsonObject = getattr(tool, "args", None) or {}
    if arguments.keys() != schema["properties"].keys():
        # A tool over a function of one text: its signature is LangChain's and does not name that text.
        schema = {"type": "object", "properties": dict(arguments), "required": list(arguments)}
    return schema if "kwargs" in schema["properties"] else {**schema, "additionalProperties": False}


def _json_schema(model: Any) -> JsonObject:
    """Return a JSON Schema: a dict as it is, or the schema of a pydantic v1 or v2 model."""
    if model is None or isinstance(model, Mapping):
        return cast("JsonObject", model or {})
    make = getattr(model, "model_json_schema", None) or getattr(model, "schema", None)
    if make is None:
        raise ToolDefinitionError("its args_schema is neither a pydantic model nor a JSON Schema")
    try:
        return cast("JsonObject", make())
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise ToolDefinitionError(f"a type in its arguments has no JSON Schema: {reason}") from error


def _model_fields(model: Any) -> Mapping[str, Any]:
    """Return the fields of a pydantic v1 or v2 model; none for a plain JSON Schema."""
    fields = getattr(model, "model_fields", None)
    return cast("Mapping[str, Any]", getattr(model, "__fields__", {}) if fields is None else fields)


def _is_required(field: Any) -> bool:
    is_required = getattr(field, "is_required", None)
    return bool(is_required() if is_required is not None else getattr(field, "required", False))


def _alias_names(field: Any) -> Iterator[str]:
    """Yield the other names of a field: an alias, alias choices, or the first element of an alias path."""
    alias = getattr(field, "validation_alias", None)
    for name in (getattr(field, "alias", None), *(getattr(alias, "choices", None) or [alias])):
        yield from ([name] if isinstance(name, str) else getattr(name, "path", ())[:1])


def _takes_call_id(field: Any) -> bool:
    metadata: list[Any] = getattr(field, "metadata", None) or []
    return any(is_a(each, "InjectedToolCallId") for each in metadata)


def _annotations_and_meta(tool: LangChainTool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return annotations and vendor data from the metadata: an MCP server's claims, and all else."""
    metadata: JsonObject = to_jsonable_python(getattr(tool, "metadata", None) or {}, fallback=str)
    claims = {key: metadata[key] for key in _ANNOTATION_KEYS if metadata.get(key) is not None}
    server_meta: Json = metadata.get("_meta")
    meta = dict(cast("JsonObject", server_meta)) if isinstance(server_meta, Mapping) else {}
    vendor = {key: value for key, value in metadata.items() if key not in (*_ANNOTATION_KEYS, "_meta")}
    return claims, {**meta, _METADATA_KEY: vendor} if vendor else meta


# --- Calls ---


def _converter(inputs: _Inputs) -> Callable[[JsonObject], dict[str, Any]]:
    """Return the argument converter; it drops arguments that only LangChain may inject."""
    call_ids = dict.fromkeys(inputs.call_ids, "call")

    def convert(arguments: JsonObject) -> dict[str, Any]:
        public = {name: deep_copy(each) for name, each in arguments.items() if name not in inputs.hidden}
        if inputs.validate is not None:
            _validate(inputs.validate, {**public, **call_ids})
        return {"arguments": public}

    return convert


def _validate(validate: Callable[[Any], Any], arguments: dict[str, Any]) -> None:
    """Validate first: LangChain reports a ValueError inside the tool as an invalid argument."""
    try:
        validate(arguments)
    except ValueError as error:
        faults = getattr(error, "errors", None)
        if faults is None:
            raise
        fault = faults()[0]
        raise argument_fault(fault["loc"], fault["msg"]) from None


def _handler(tool: LangChainTool, inputs: _Inputs) -> Callable[..., Any]:
    # A plain call would lose the artifact, or the error status of a handled error.
    with_artifact = getattr(tool, "response_format", "content") == "content_and_artifact"
    handlers = (getattr(tool, f"handle_{kind}_error", False) for kind in ("tool", "validation"))
    as_tool_call = with_artifact or any(handlers) or bool(inputs.call_ids)

    def invocation(arguments: dict[str, Any], context: ToolContext) -> tuple[dict[str, Any], dict[str, Any]]:
        config = {"configurable": {CONTEXT_KEY: context}}
        if not as_tool_call and arguments.get("type") != "tool_call":
            return arguments, config
        return {"type": "tool_call", "id": uuid4().hex, "name": tool.name, "args": arguments}, config

    async def acall(arguments: dict[str, Any], context: ToolContext) -> Result:
        with _tool_errors():
            return langchain_result(await tool.ainvoke(*invocation(arguments, context)))

    def call(arguments: dict[str, Any], context: ToolContext) -> Result:
        with _tool_errors():
            return langchain_result(tool.invoke(*invocation(arguments, context)))

    return call if _is_blocking(tool) else acall


def _is_blocking(tool: LangChainTool) -> bool:
    """Whether the tool has only a synchronous function.

    LangChain would run it in the event loop's small default thread pool, where a hanging function blocks
    DNS lookups; it runs in our own threads, which are bounded per source.
    """
    if getattr(tool, "coroutine", None) is not None or not callable(getattr(tool, "invoke", None)):
        return False
    methods = (getattr(type(tool), name, None) for name in ("ainvoke", "_arun"))
    return all(getattr(each, "__module__", "").startswith(_LANGCHAIN_TOOLS) for each in methods)


@contextmanager
def _tool_errors() -> Generator[None]:
    """Convert a ToolException to an error for the caller; other exceptions are only for the operator."""
    try:
        yield
    except Exception as error:  # LangChain's exception is recognized by name, to avoid importing LangChain
        if not is_a(error, "ToolException"):
            raise
        raise Failed("TOOL_FAILED", tool_error_text(str(error))) from None
