"""Analyses a function's signature: JSON Schema, argument conversion, context parameter."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, NotRequired, Unpack, cast, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined, SchemaError
from typing_extensions import Doc, TypedDict, is_typeddict

from toolcrib.errors import Refused
from toolcrib.model import Json, JsonObject
from toolcrib.sdk.checks import ToolDefinitionError
from toolcrib.sdk.context import ToolContext, ToolResult

Convert = Callable[[JsonObject], dict[str, Any]]
Function = Callable[..., Any]

_WHOLE_OBJECT = "params"
"""A single parameter of this name receives all arguments as one value, as in `(params, context)`."""
_CONTAINERS = frozenset({dict, list})
_MAX_ERROR_CHARS = 1_000
"""Maximum characters of a path, or of a message, in an error."""
_UNNAMED_KINDS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Inputs and output of a function."""

    schema: JsonObject
    """JSON Schema of its arguments."""
    convert: Convert
    """Converts validated JSON to keyword arguments: a copy that only the function holds."""
    context: str | None = None
    """Name of the parameter for the ToolContext, if any."""
    output: JsonObject | None = None
    """JSON Schema of the return value, if that is an object."""


class _Schema(GenerateJsonSchema):
    """Omits what only lengthens tool lists: titles derived from names, defaults that are not JSON."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: the title would repeat the name."""
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Suppress warnings about defaults that are not JSON: they concern the function, not the caller."""


PLACEHOLDER_SIGNATURE = Signature(schema={"type": "object"}, convert=dict)
"""Placeholder for a refused signature, so that the rest of the definition can be validated too."""


def read_signature(function: Function, described: Mapping[str, str] | None = None) -> Signature:
    """Return a function's signature; refuse parameters that JSON arguments cannot fill.

    `described` has the parameter texts of the docstring; a description in the annotation takes precedence.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        fix = "return a list, and report progress with ctx.report"
        raise ToolDefinitionError(f"generators are not supported: {fix}")
    signature = _inspected(function)
    parameters = dict(signature.parameters)
    context = next((name for name, each in parameters.items() if _is_context(each.annotation)), None)
    if context is not None:
        del parameters[context]
    for index, parameter in enumerate(parameters.values()):
        _refuse_unreachable(parameter, first=index == 0)
    try:
        schema, convert = _inputs(parameters, described or {}, context)
        output = _output(signature.return_annotation)
    except (PydanticUserError, SchemaError) as error:
        # The relevant line is the last one of a nested SchemaError, else the first one.
        lines = str(error).strip().splitlines()
        reason = lines[-1 if isinstance(error, SchemaError) else 0].removeprefix("error: ")
        raise ToolDefinitionError(f"a type in its signature has no JSON Schema: {reason}") from error
    return Signature(schema=schema, convert=convert, context=context, output=output)


def deep_copy(value: Json) -> Json:
    """Copy the containers of a JSON value recursively, so that changes to it affect no other holder."""
    if type(value) is dict:
        return {name: deep_copy(each) for name, each in cast("dict[str, Any]", value).items()}
    if type(value) is list:
        return [deep_copy(each) for each in cast("list[Any]", value)]
    if type(value) is tuple:
        return tuple(deep_copy(each) for each in cast("tuple[Any, ...]", value))
    return value


def _inspected(function: Function) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        fix = "import it at the top of the module, and not under TYPE_CHECKING"
        raise ToolDefinitionError(f"the annotation {error.name!r} cannot be resolved: {fix}") from error
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError("it has no signature: wrap it in a function that has one") from error


def _is_context(annotation: object) -> bool:
    types = get_args(annotation) if get_origin(annotation) is not None else (annotation,)
    return any(isinstance(each, type) and issubclass(each, ToolContext) for each in types)


def _refuse_unreachable(parameter: inspect.Parameter, *, first: bool) -> None:
    if parameter.kind in _UNNAMED_KINDS or get_origin(parameter.annotation) is Unpack:
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        name = stars.get(parameter.kind, "") + parameter.name
        fix = "replace it by named, typed parameters"
        raise ToolDefinitionError(f"the parameter {name} cannot be passed by name: {fix}")
    if first and parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
        raise ToolDefinitionError("it is an unbound method: wrap the bound one, tool(thing.method)")


def _inputs(
    parameters: Mapping[str, inspect.Parameter], described: Mapping[str, str], context: str | None
) -> tuple[JsonObject, Convert]:
    if set(parameters) == {_WHOLE_OBJECT} and _is_record(parameters[_WHOLE_OBJECT].annotation):
        adapter = TypeAdapter[Any](parameters[_WHOLE_OBJECT].annotation)
        return _closed(_schema_of(adapter, "validation")), _object_converter(adapter)
    fields = {
        name: _field(each, described.get(name)) for name, each in parameters.items() if not _is_extras(each)
    }
    extras = next((each for each in parameters.values() if _is_extras(each)), None)
    options: dict[str, Any] = {}
    if extras is not None:
        options["extra_items"] = Any if extras.annotation is extras.empty else extras.annotation
    # A TypedDict, not a model: any name may be a field, and validation returns the keyword arguments.
    adapter = TypeAdapter[Any](TypedDict("Arguments", fields, **options))  # pyright: ignore[reportArgumentType]
    schema = dict(_schema_of(adapter, "validation"))
    schema.setdefault("properties", {})
    if extras is None:
        return _closed(schema), _field_converter(adapter)
    schema.setdefault("additionalProperties", True)
    return schema, _field_converter(adapter, reserved=context)


def _is_extras(parameter: inspect.Parameter) -> bool:
    """Whether it receives the arguments that no parameter names: `**extras`."""
    return parameter.kind is inspect.Parameter.VAR_KEYWORD


def _closed(schema: JsonObject) -> JsonObject:
    """Refuse arguments that the schema does not name, unless the model says what to do with them.

    pydantic ignores them: a misspelled optional argument would silently be replaced by its default.
    """
    definitions, target = schema.get("$defs", {}), schema.get("$ref", "").removeprefix("#/$defs/")
    if target in definitions:
        # A recursive model: its definition stays as it is, for the nested values that refer to it.
        schema = {**definitions[target], **{key: each for key, each in schema.items() if key != "$ref"}}
        schema.pop("title", None)
    return {**schema, "additionalProperties": False, **schema} if "properties" in schema else schema


def _is_record(annotation: Any) -> bool:
    bare: Any = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    is_model = inspect.isclass(bare) and issubclass(bare, BaseModel)
    return is_model or is_typeddict(bare) or (inspect.isclass(bare) and is_dataclass(bare))


def _field(parameter: inspect.Parameter, described: str | None) -> Any:
    bare, metadata = _type_and_metadata(parameter)
    _refuse_second_default(parameter, metadata)
    default = parameter.default
    fields = [*metadata, default] if isinstance(default, FieldInfo) else metadata
    if described and not any(isinstance(each, FieldInfo) and each.description for each in fields):
        metadata = [*metadata, Field(description=described)]
    if isinstance(default, FieldInfo):
        field = Annotated[(bare, *metadata, default)]
        return field if default.is_required() else NotRequired[field]
    if default is not parameter.empty:
        return NotRequired[Annotated[(bare, *metadata, Field(default=default))]]
    return Annotated[(bare, *metadata)] if metadata else bare


def _type_and_metadata(parameter: inspect.Parameter) -> tuple[Any, list[Any]]:
    """Split an `Annotated` type and its metadata; a plain text or a `Doc` becomes the description."""
    annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
    if get_origin(annotation) is not Annotated:
        return annotation, []
    bare, *metadata = get_args(annotation)
    texts = (each.documentation if isinstance(each, Doc) else each for each in metadata)
    return bare, [Field(description=each) if isinstance(each, str) else each for each in texts]


def _refuse_second_default(parameter: inspect.Parameter, metadata: list[Any]) -> None:
    fields = (each for each in metadata if isinstance(each, FieldInfo))
    if any(field.default is not PydanticUndefined or field.default_factory is not None for field in fields):
        name = parameter.name
        raise ToolDefinitionError(f"the default of {name} is set in Field: set it as {name} = …")


def _field_converter(adapter: TypeAdapter[Any], reserved: str | None = None) -> Convert:
    """Return the converter to keyword arguments; no extra argument may have the `reserved` name."""
    validate = adapter.validator.validate_python

    def convert(arguments: JsonObject) -> dict[str, Any]:
        if reserved is not None and reserved in arguments:
            raise argument_fault((reserved,), "this name is reserved; choose another one")
        copies = {name: deep_copy(each) for name, each in arguments.items() if type(each) in _CONTAINERS}
        try:
            return validate({**arguments, **copies})
        except ValidationError as error:
            raise _first_fault(error) from None

    return convert


def _object_converter(adapter: TypeAdapter[Any]) -> Convert:
    validate = adapter.validator.validate_python

    def convert(arguments: JsonObject) -> dict[str, Any]:
        try:
            return {_WHOLE_OBJECT: validate(deep_copy(dict(arguments)))}
        except ValidationError as error:
            raise _first_fault(error) from None

    return convert


def _first_fault(error: ValidationError) -> Refused:
    """Return the first fault with its path. Without values: they may be secret, and the caller has them."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return argument_fault(fault["loc"], fault["msg"].removeprefix("Value error, "))


def argument_fault(location: Iterable[str | int], message: str) -> Refused:
    """Return the error for an argument. The path contains names from the caller, so it is truncated."""
    path = ".".join(("arguments", *map(str, location)))[:_MAX_ERROR_CHARS]
    return Refused("INVALID_ARGUMENTS", f"{path}: {message[:_MAX_ERROR_CHARS]}", path=path)


def _output(annotation: Any) -> JsonObject | None:
    if get_origin(annotation) is ToolResult:
        annotation = get_args(annotation)[0]
    if annotation in (inspect.Signature.empty, None, Any, ToolResult):
        return None
    schema = _schema_of(TypeAdapter[Any](annotation), "serialization")
    return schema if schema.get("type") == "object" else None


def _schema_of(adapter: TypeAdapter[Any], mode: Any) -> JsonObject:
    schema = adapter.json_schema(mode=mode, schema_generator=_Schema)
    schema.pop("title", None)
    target = schema.get("$ref", "").removeprefix("#/$defs/")
    if target and schema["$defs"].get(target, {}).get("type") == "object":
        schema["type"] = "object"
    return schema
