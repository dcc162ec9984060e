"""The list of all settings, by reflection on the sections: for the docs, and for suggestions on typos."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from toolcrib.config.errors import Where
from toolcrib.config.sections import Sections
from toolcrib.config.value_types import format_rate
from toolcrib.model import Deprecation, RateLimit

_TYPE_NAMES: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    RateLimit: "rate",
    Deprecation: "mapping",
}


class Setting(NamedTuple):
    """One setting, as the docs list it. Keys chosen by the operator appear as `<name>`."""

    path: str
    type: str
    default: str
    meaning: str


@cache
def settings() -> tuple[Setting, ...]:
    """Return every setting, in the order of the document."""
    return tuple(_settings(Sections, ""))


def setting_names(where: Where) -> tuple[str, ...]:
    """Return the names of the settings that are valid in the mapping at a path."""
    kind: Any = Sections
    for part in where:
        kind = _type_at(kind, part)
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def _settings(kind: type, prefix: str) -> Iterator[Setting]:
    for field in fields(kind):
        hint, path = _hints(kind)[field.name], f"{prefix}{field.name}"
        inner = _bare_type(hint)
        if _is_section(inner):
            yield from _settings(inner, f"{path}.")
            continue
        meaning = next(note for note in hint.__metadata__ if isinstance(note, str))
        yield Setting(path, _type_name(hint), _default(field), meaning)
        if _is_section(_element(inner)):
            yield from _settings(_element(inner), f"{path}.<name>." if _is_mapping(inner) else f"{path}[].")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _bare_type(hint: Any) -> Any:
    """Strip `Annotated` and `| None` off a type."""
    if get_origin(hint) is Annotated:
        return _bare_type(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return _bare_type(next(inner for inner in get_args(hint) if inner is not NoneType))
    return hint


def _is_section(kind: Any) -> bool:
    return is_dataclass(kind) and kind not in _TYPE_NAMES


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping


def _element(kind: Any) -> Any:
    """Return the element type of a mapping or a list."""
    arguments = get_args(kind)
    return _bare_type(arguments[1] if _is_mapping(kind) else arguments[0]) if arguments else None


def _type_at(kind: Any, part: str | int) -> Any:
    if is_dataclass(kind):
        return _bare_type(_hints(cast("type", kind)).get(str(part)))
    return _element(kind)


def _type_name(hint: Any) -> str:
    kind = _bare_type(hint)
    if kind in _TYPE_NAMES:
        return _TYPE_NAMES[kind]
    if get_origin(kind) is Literal:
        return ", ".join(str(value) for value in get_args(kind))
    element = "mapping" if _is_section(_element(kind)) else _type_name(_element(kind))
    return f"mapping of {element}" if _is_mapping(kind) else f"list of {element}"


def _default(field: Field[Any]) -> str:
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    value = field.default
    if isinstance(value, RateLimit):
        return format_rate(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if value == ():
        return "[]"
    return str(value) if isinstance(value, str | int | float) else "{}"
