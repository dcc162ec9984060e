"""Analyses a function's signature: JSON Schema, argument conversion, context parameter."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, NotRequired, cast, get_args, get_origin

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
_UNNAMED_KINDS = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


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
    _refuse_generators(function)
    signature = _inspected(function)
    parameters = dict(signature.parameters)
    context = next((name for name, each in parameters.items() if _is_context(each.annotation)), None)
    if context is not None:
        del parameters[context]
    for place, parameter in enumerate(parameters.values()):
        _refuse_unreachable(parameter, first=place == 0)
    try:
        schema, convert = _inputs(parameters, described or {})
        output = _output(signature.return_annotation)
    except (PydanticUserError, SchemaError) as error:
        raise ToolDefinitionError(f"a type in its signature has no JSON Schema: {_reason(error)}") from error
    return Signature(schema=schema, convert=convert, context=context, output=output)


def _reason(error: PydanticUserError | SchemaError) -> str:
    """Return the relevant line: the last one of a nested SchemaError, else the first one."""
    lines = str(error).strip().splitlines()
    return lines[-1 if isinstance(error, SchemaError) else 0].removeprefix("error: ")


def deep_copy(value: Json) -> Json:
    """Copy the containers of a JSON value recursively, so that changes to it affect no other holder."""
    if type(value) is dict:
        return {name: deep_copy(each) for name, each in cast("dict[str, Any]", value).items()}
    if type(value) is list:
        return [deep_copy(each) for each in cast("list[Any]", value)]
    return (
        tuple(deep_copy(each) for each in cast("tuple[Any, ...]", value)) if type(value) is tuple else value
    )


def _refuse_generators(function: Function) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(
            "generators are not supported: return a list, and report progress with ctx.report"
        )


def _inspected(function: Function) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        fix = "import it at the top of the module, and not under TYPE_CHECKING"
        raise ToolDefinitionError(f"the annotation {error.name!r} cannot be resolved: {fix}") from error
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError("it has no signature: wrap it in a function that has one") from error


def _is_context(annotation: object) -> bool:
    return any(isinstance(each, type) and issubclass(each, ToolContext) for each in _alternatives(annotation))


def _alternatives(annotation: object) -> tuple[object, ...]:
    return get_args(annotation) if get_origin(annotation) is not None else (annotation,)


def _refuse_unreachable(parameter: inspect.Parameter, *, first: bool) -> None:
    if parameter.kind in _UNNAMED_KINDS:
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        name = stars.get(parameter.kind, "") + parameter.name
        raise ToolDefinitionError(
            f"the parameter {name} cannot be passed by name: replace it by named, typed parameters"
        )
    if first and parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
        raise ToolDefinitionError("it is an unbound method: wrap the bound one, tool(thing.method)")


def _inputs(
    parameters: Mapping[str, inspect.Parameter], described: Mapping[str, str]
) -> tuple[JsonObject, Convert]:
    if set(parameters) == {_WHOLE_OBJECT} and _is_record(parameters[_WHOLE_OBJECT].annotation):
        adapter = TypeAdapter[Any](parameters[_WHOLE_OBJECT].annotation)
        return _schema_of(adapter, "validation"), _object_converter(adapter)
    fields = {name: _field(parameter, described.get(name)) for name, parameter in parameters.items()}
    # A TypedDict, not a model: any name may be a field, and validation returns the keyword arguments.
    adapter = TypeAdapter[Any](TypedDict("Arguments", fields))  # pyright: ignore[reportArgumentType]
    schema = dict(_schema_of(adapter, "validation"))
    schema.setdefault("properties", {})
    return schema, _field_converter(adapter)


def _is_record(annotation: Any) -> bool:
    bare: Any = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    is_model = inspect.isclass(bare) and issubclass(bare, BaseModel)
    return is_model or is_typeddict(bare) or (inspect.isclass(bare) and is_dataclass(bare))


def _field(parameter: inspect.Parameter, described: str | None) -> Any:
    bare, marks = _type_and_metadata(parameter)
    _refuse_second_default(parameter, marks)
    default = parameter.default
    given = [*marks, default] if isinstance(default, FieldInfo) else marks
    if described and not any(isinstance(mark, FieldInfo) and mark.description for mark in given):
        marks = [*marks, Field(description=described)]
    if isinstance(default, FieldInfo):
        field = Annotated[(bare, *marks, default)]
        return field if default.is_required() else NotRequired[field]
    if default is not parameter.empty:
        return NotRequired[Annotated[(bare, *marks, Field(default=default))]]
    return Annotated[(bare, *marks)] if marks else bare


def _type_and_metadata(parameter: inspect.Parameter) -> tuple[Any, list[Any]]:
    """Split an `Annotated` type and its metadata; a plain text or a `Doc` becomes the description."""
    annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
    if get_origin(annotation) is not Annotated:
        return annotation, []
    bare, *marks = get_args(annotation)
    return bare, [_metadata_field(mark) for mark in marks]


def _metadata_field(mark: Any) -> Any:
    text = mark.documentation if isinstance(mark, Doc) else mark
    return Field(description=text) if isinstance(text, str) else mark


def _refuse_second_default(parameter: inspect.Parameter, marks: list[Any]) -> None:
    fields = (mark for mark in marks if isinstance(mark, FieldInfo))
    if any(field.default is not PydanticUndefined or field.default_factory is not None for field in fields):
        raise ToolDefinitionError(
            f"the default of {parameter.name} is set in Field: set it as {parameter.name} = …"
        )


def _field_converter(adapter: TypeAdapter[Any]) -> Convert:
    validate = adapter.validator.validate_python

    def convert(arguments: JsonObject) -> dict[str, Any]:
        owned = {
            name: deep_copy(each) if type(each) in _CONTAINERS else each for name, each in arguments.items()
        }
        try:
            return validate(owned)
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


def argument_fault(place: Iterable[str | int], said: str) -> Refused:
    """Return the error for an argument. The path contains names from the caller, so it is truncated."""
    path = ".".join(("arguments", *map(str, place)))[:_MAX_ERROR_CHARS]
    return Refused("INVALID_ARGUMENTS", f"{path}: {said[:_MAX_ERROR_CHARS]}", path=path)


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
