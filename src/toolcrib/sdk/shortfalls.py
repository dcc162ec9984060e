"""Quality rules of a tool definition: required by `@tool`, reported by checks for other tools."""

import re
from collections.abc import Callable, Iterator

from toolcrib.model import JsonObject, Tool
from toolcrib.sdk.parameters import Parameter, items_of, parameters

_VERB_NOUN = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_ID = re.compile(r"(?:.*_)?ids?|.*[a-z0-9]Ids?")
_USE = re.compile(
    r"\b(us(e|ed|es|eful|ing)|when(ever)?|examples?|for instance|such as)\b|e\.g\.", re.IGNORECASE
)
_SHORTEST_DESCRIPTION = 50
_SETTLED = frozenset({"enum", "const"})
_RANGE = _SETTLED | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_LENGTH = _SETTLED | {"minItems", "maxItems"}
_SHAPE = _SETTLED | {"pattern", "format"}
_TEXT = _SHAPE | {"minLength", "maxLength"}


def _name(tool: Tool) -> Iterator[str]:
    if ":" not in tool.local and not _VERB_NOUN.fullmatch(tool.local):
        yield f'the name {tool.local!r} is not kebab-case verb-noun: write it like name="get-card"'


def _description(tool: Tool) -> Iterator[str]:
    length = len(" ".join(tool.description.split()))
    if length < _SHORTEST_DESCRIPTION:
        yield (
            f"the description has {length} characters: say in {_SHORTEST_DESCRIPTION} or more"
            " what it does, when to use it and what it returns"
        )


def _uses(tool: Tool) -> Iterator[str]:
    if not _USE.search(tool.description):
        yield 'the description names no use: add a sentence such as "Use it when someone names a card."'


def _parameters(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if not each.description:
            yield (
                f"the parameter {each.path} has no description: put it under Args: in the docstring, or"
                ' write Annotated[…, Field(description="…")]'
            )


def _ids(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if _ID.fullmatch(each.name) and any(map(_is_any_text, _texts(tool.input_schema, each))):
            yield (
                f"the parameter {each.path} is an id that takes any text: use a branded id,"
                ' class CardId(BrandedId, prefix="card", description="…")'
            )


def _bounds(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if any(_RANGE.isdisjoint(form) for form in each.of_type("integer", "number")):
            yield f"the number {each.path} has no bound: say Field(ge=…), Field(le=…) or both"
        if any(_LENGTH.isdisjoint(form) for form in each.of_type("array")):
            yield f"the list {each.path} has no bound: say Field(max_length=…), how many it takes at most"


def _examples(tool: Tool) -> Iterator[str]:
    if not tool.examples:
        yield "there is no example: give at least one with description, params and expectedResult"
    for number, example in enumerate(tool.examples, 1):
        if not example.description:
            yield f"example {number} does not say what it shows: give description"
        if example.expected is None:
            yield f"example {number} does not say what comes back: give expectedResult"


def _tags(tool: Tool) -> Iterator[str]:
    if not tool.tags:
        yield "there is no tag: give at least one, by which it can be found"


def _deprecation(tool: Tool) -> Iterator[str]:
    if tool.deprecated is None:
        return
    if tool.deprecated.replacement is None:
        yield "deprecated names no replacement: say which tool to use instead"
    if tool.deprecated.removal_date is None:
        yield "deprecated has no removalDate: say until when it answers, at least 90 days on"


def _strings(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if any(_TEXT.isdisjoint(form) for form in each.of_type("string")):
            yield f"the text {each.path} may be of any length: Field(max_length=…) says how much makes sense"


def _texts(schema: JsonObject, parameter: Parameter) -> Iterator[JsonObject]:
    """Yield the text alternatives of a parameter and of its items."""
    yield from parameter.of_type("string")
    for form in parameter.of_type("array"):
        yield from (each for each in items_of(schema, form) if each.get("type") == "string")


def _is_any_text(form: JsonObject) -> bool:
    return _SHAPE.isdisjoint(form)


SHORTFALLS: dict[str, Callable[[Tool], Iterator[str]]] = {
    "name": _name,
    "description": _description,
    "uses": _uses,
    "parameters": _parameters,
    "ids": _ids,
    "bounds": _bounds,
    "examples": _examples,
    "tags": _tags,
    "deprecated": _deprecation,
}
ADVICE: dict[str, Callable[[Tool], Iterator[str]]] = {"strings": _strings}
