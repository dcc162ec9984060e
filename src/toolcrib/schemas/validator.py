"""Compiles schemas to validators, within a bound on their validation cost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NoReturn, cast

import jsonschema_rs
import orjson

from toolcrib.model import JsonObject
from toolcrib.schemas.explain import ValidationFault, explain
from toolcrib.schemas.subschemas import (
    MAX_JSON_VALUES,
    InvalidSchema,
    Schema,
    Subschema,
    index_subschemas,
    measure,
    too_deep,
)

# --- Regular expressions of a schema: linear time and bounded memory, or not executed at all ---

MAX_PATTERNS = 256
MAX_PATTERN_BYTES = 4 * 1024 * 1024
"""Bytes that all compiled patterns of a schema may take together: some tenths of a second at worst."""


def pattern_options(places: Iterable[Subschema]) -> jsonschema_rs.RegexOptions:
    """Select the linear-time engine, and divide the memory among the patterns."""
    distinct = {pattern for place in places for pattern in (*_own_pattern(place), *_member_patterns(place))}
    if len(distinct) > MAX_PATTERNS:
        raise InvalidSchema("#", f"it holds more than {MAX_PATTERNS} different patterns")
    return jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES // max(1, len(distinct)))


def without_unsafe(schema: Schema, options: jsonschema_rs.RegexOptions) -> tuple[Schema, tuple[str, ...]]:
    """Copy a schema without patterns the engine rejects, such as look-around; return their paths too."""
    copy = deepcopy(schema)
    dropped: list[str] = []
    for place in index_subschemas(copy).values():
        # Members with an unsupported pattern would become unknown, and perhaps rejected, so it is an error.
        if not all(_is_supported(pattern, options) for pattern in _member_patterns(place)):
            raise InvalidSchema(
                f"{place.path}/patternProperties", "a pattern is wrong, too large or uses look-around"
            )
        if not all(_is_supported(pattern, options) for pattern in _own_pattern(place)):
            del place.schema["pattern"]
            dropped.append(f"{place.path}/pattern")
    return copy, tuple(sorted(dropped))


def _own_pattern(place: Subschema) -> tuple[str, ...]:
    pattern: Any = place.schema.get("pattern")
    return (pattern,) if isinstance(pattern, str) else ()


def _member_patterns(place: Subschema) -> tuple[str, ...]:
    named: Any = place.schema.get("patternProperties")
    return tuple(named) if isinstance(named, dict) else ()  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _is_supported(pattern: str, options: jsonschema_rs.RegexOptions) -> bool:
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return False
    return True


# --- Static upper bounds for the cost of validating against a schema ---

MAX_SCHEMA_PATHS = 10_000
"""Paths through a schema: nested unions of shared definitions double them with each level."""
MAX_SUBSCHEMA_CHAIN = 64
"""Chained subschemas that apply to one value. The validator recurses: chain times depth is its stack."""

Edges = Mapping[int, Sequence[int]]
SubschemaIndex = Mapping[int, Subschema]


@dataclass(frozen=True, slots=True)
class ValidationCost:
    """Upper bounds for the work of one validation."""

    paths: int
    """Paths through the schema; a recursion counts once."""
    visits: int
    """Evaluations of one value, per level."""
    growth: int
    """Factor by which the evaluations can grow from one level to the next."""
    recursive: bool
    """Whether the depth is bounded only by the value."""
    branching: bool
    """Whether there are unions: the validator collects their errors for each branch."""

    def errors(self, depth: int, nodes: int) -> int:
        """Return the maximum number of errors for a value of this size."""
        most = self.visits * self.growth**depth
        return nodes * (most if self.recursive else min(most, self.paths))


def validation_cost(places: SubschemaIndex) -> ValidationCost:
    """Calculate the cost of a schema; raise InvalidSchema if it is unbounded or too high."""
    here = {key: _same_value_edges(place) for key, place in places.items()}
    order = _postorder(here)
    _check_chains(order, here, places)
    paths, recursive = _count_paths(here, places)
    return ValidationCost(
        paths=paths,
        visits=_largest_sum(order, here, places, lambda _: 1),
        growth=max(
            _largest_sum(order, here, places, _member_keywords),
            _largest_sum(order, here, places, _item_keywords),
            1,
        ),
        recursive=recursive,
        branching=any("anyOf" in place.schema or "oneOf" in place.schema for place in places.values()),
    )


def _same_value_edges(place: Subschema) -> Sequence[int]:
    # `unevaluated*` evaluates the subschemas of the same value a second time.
    if place.here and ("unevaluatedProperties" in place.schema or "unevaluatedItems" in place.schema):
        return place.here * 2
    return place.here


def _postorder(edges: Edges) -> list[int]:
    """Return the subschemas in postorder: each after its targets, cycles aside."""
    order: list[int] = []
    seen: set[int] = set()
    stack = list(edges)
    while stack:
        key = stack.pop()
        if key < 0:  # all targets are done
            order.append(~key)
        elif key not in seen:
            seen.add(key)
            stack.append(~key)
            stack += edges[key]
    return order


def _check_chains(order: Sequence[int], here: Edges, places: SubschemaIndex) -> None:
    chains: dict[int, int] = {}
    for key in order:
        longest = 0
        for target in here[key]:
            if target not in chains:
                raise InvalidSchema(places[key].path, "it refers to itself without going a level deeper")
            longest = max(longest, chains[target])
        if longest >= MAX_SUBSCHEMA_CHAIN:
            raise InvalidSchema(
                places[key].path, f"more than {MAX_SUBSCHEMA_CHAIN} steps are chained on one value"
            )
        chains[key] = longest + 1


def _count_paths(here: Edges, places: SubschemaIndex) -> tuple[int, bool]:
    """Return the highest number of paths from any subschema, and whether the schema is recursive."""
    edges = {key: [*here[key], *place.below] for key, place in places.items()}
    ways: dict[int, int] = {}
    recursive = False
    for key in _postorder(edges):
        count = _own_cost(places[key].schema)
        for target in edges[key]:
            # In postorder, a target without a count is part of a cycle.
            recursive = recursive or target not in ways
            count += ways.get(target, 1)
        if count > MAX_SCHEMA_PATHS:
            raise InvalidSchema(
                "#", f"there are more than {MAX_SCHEMA_PATHS:,} ways through it; nest fewer references"
            )
        ways[key] = count
    return max(ways.values()), recursive


def _largest_sum(
    order: Sequence[int], here: Edges, places: SubschemaIndex, own: Callable[[Schema], int]
) -> int:
    """Add each subschema's count to those of all it applies to the same value; return the maximum."""
    sums: dict[int, int] = {}
    for key in order:
        count = own(places[key].schema)
        for target in here[key]:
            count += sums[target]
        sums[key] = count
    return max(sums.values())


def _own_cost(schema: Schema) -> int:
    """Return one, plus one for each `enum` option that needs a deep comparison."""
    options: Any = schema.get("enum")
    if not isinstance(options, list):
        return 1
    return 1 + sum(isinstance(option, (dict, list)) for option in options)  # pyright: ignore[reportUnknownVariableType]


def _member_keywords(schema: Schema) -> int:
    """Return how many keywords can apply to the same member of an object."""
    patterns: Any = schema.get("patternProperties")
    plain = "properties" in schema or "additionalProperties" in schema
    named = len(patterns) if isinstance(patterns, dict) else 0  # pyright: ignore[reportUnknownArgumentType]
    return plain + named + ("unevaluatedProperties" in schema)


def _item_keywords(schema: Schema) -> int:
    """Return how many keywords can apply to the same item of an array."""
    plain = "items" in schema or "prefixItems" in schema or "additionalItems" in schema
    return plain + ("contains" in schema) + ("unevaluatedItems" in schema)


# --- Compiled JSON Schema validators that fetch no references and have bounded time for any value or pattern
# ---

MAX_EVALUATIONS = 20_000_000
"""Subschema evaluations allowed in one validation: about a quarter of a second."""
MAX_COLLECTED_ERRORS = 5_000
"""Errors an explanation may collect: the library creates all of them before it returns the first."""
MAX_VALIDATION_FAULTS = 10

_LIBRARY_ERRORS = (ValueError, RuntimeError)
"""Raised by the library for a Python object that is not JSON, or a compiled schema it cannot execute."""


class Validator:
    """A compiled schema. Values must satisfy `too_deep`, as the library recurses."""

    def __init__(
        self,
        schema: Schema,
        compiled: jsonschema_rs.Validator,
        effort: ValidationCost,
        unchecked: tuple[str, ...],
    ) -> None:
        self.unchecked = unchecked
        """Paths of patterns that cannot run in linear time; they are not checked."""
        self._schema = schema
        self._compiled = compiled
        self._effort = effort
        # Cheap schemas need no measurement: even the largest value stays within the bound.
        self._always_light = effort.paths * MAX_JSON_VALUES <= MAX_EVALUATIONS

    def ok(self, instance: Any) -> bool:
        """Return whether a value is valid."""
        try:
            return (self._always_light or self._is_light(instance)) and self._compiled.is_valid(instance)
        except _LIBRARY_ERRORS:
            return False

    def faults(self, instance: Any, prefix: str = "arguments") -> tuple[ValidationFault, ...]:
        """Return at most ten validation errors; empty if the value is valid."""
        if self.ok(instance):
            return ()
        if not self._is_light(instance):
            return (
                _fault_of_value(prefix, "a smaller value", "is too large to be checked against its schema"),
            )
        try:
            errors = self._errors(instance)
        except _LIBRARY_ERRORS as error:
            return (_fault_of_value(prefix, "JSON", f"must be JSON that can be checked: {error}"),)
        faults = tuple(islice(explain(errors, schema=self._schema, prefix=prefix), MAX_VALIDATION_FAULTS))
        if faults:
            return faults
        return (_fault_of_value(prefix, "another value", "does not fit its schema; it cannot be said where"),)

    def _is_light(self, instance: Any) -> bool:
        return measure(instance)[1] * self._effort.paths <= MAX_EVALUATIONS

    def _errors(self, instance: Any) -> Iterable[jsonschema_rs.ValidationError]:
        """Collect as many errors as the cost bounds allow: all, the first one, or none."""
        depth, nodes = measure(instance)
        limits = self._effort
        if limits.errors(depth, nodes) <= MAX_COLLECTED_ERRORS:
            return self._compiled.iter_errors(instance)
        if limits.branching or (limits.recursive and limits.growth > 1):
            return ()
        found: list[jsonschema_rs.ValidationError] = []
        try:
            self._compiled.validate(instance)
        except jsonschema_rs.ValidationError as error:
            found.append(error)
        return found


def compile_schema(schema: JsonObject) -> Validator:
    """Compile a schema that has passed `check`; raise InvalidSchema if it is unsafe."""
    # Without `$id`, a schema cannot be resolved under another schema's identifier.
    plain = {keyword: value for keyword, value in schema.items() if keyword != "$id"}
    places = index_subschemas(plain)
    limits = validation_cost(places)
    options = pattern_options(places.values())
    try:
        return Validator(plain, validator_of(plain, options), limits, ())
    except ValueError as error:
        safe, unchecked = without_unsafe(plain, options)
        if not unchecked:
            raise _refusal(error) from error
    try:
        return Validator(plain, validator_of(safe, options), limits, unchecked)
    except ValueError as error:
        raise _refusal(error) from error


def validator_of(schema: Schema, options: jsonschema_rs.RegexOptions) -> jsonschema_rs.Validator:
    """Compile a schema with every external lookup disabled; raise ValueError if it is invalid."""
    return jsonschema_rs.validator_for(
        schema, retriever=_fetch_nothing, validate_formats=False, pattern_options=options
    )


def _fetch_nothing(uri: str) -> NoReturn:
    raise LookupError("references must stay inside the schema")


def _refusal(error: ValueError) -> InvalidSchema:
    """Convert an error of the metaschema or of the library to InvalidSchema, with its path."""
    if not isinstance(error, jsonschema_rs.ValidationError):
        return InvalidSchema("#", f"it is not JSON: {error}")
    fault = next(explain([error], schema={}, prefix="#"))
    steps = "".join([f"/{step}" for step in error.instance_path])
    return InvalidSchema(
        f"#{steps}", f"the schema is wrong: it {fault.message.removeprefix(f'{fault.path}: ')}"
    )


def _fault_of_value(prefix: str, expected: str, sentence: str) -> ValidationFault:
    return ValidationFault(prefix, expected, f"{prefix}: {sentence}")


# --- Admits external schemas that are bounded, self-contained and compilable, and rejects all others ---

MAX_SCHEMA_BYTES = 64 * 1024
MAX_SCHEMA_DEPTH = 32


@dataclass(frozen=True, slots=True)
class GuardedSchema:
    """An admitted schema, and the repairs that were necessary."""

    schema: Schema
    repairs: tuple[str, ...] = ()


def check(schema: object, *, root: Literal["object"] | None = "object") -> GuardedSchema:
    """Check a schema and return a private copy; `root="object"` requires the type of tool arguments."""
    if not isinstance(schema, Mapping):
        raise InvalidSchema("#", "a schema must be a JSON object")
    plain = _bounded_copy(cast("Mapping[str, Any]", schema))
    repairs: list[str] = []
    if plain.pop("$id", None) is not None:
        repairs.append("#/$id was left out: references stay inside the schema")
    if root == "object":
        plain = _with_object_root(plain, repairs)
    validator = compile_schema(plain)
    repairs += [
        f"{path} is left to the tool to check: it cannot be run safely" for path in validator.unchecked
    ]
    return GuardedSchema(plain, tuple(repairs))


def _bounded_copy(schema: Mapping[str, Any]) -> Schema:
    # Bounds first: shared subtrees can be small in memory and exponential when serialized.
    excess = too_deep(dict(schema), MAX_SCHEMA_DEPTH, MAX_SCHEMA_BYTES)
    if excess:
        raise InvalidSchema("#", f"it {excess}; split the tool or flatten its parameters")
    try:
        text = orjson.dumps(dict(schema))
    except TypeError as error:
        raise InvalidSchema("#", f"it is not JSON: {error}") from error
    if len(text) > MAX_SCHEMA_BYTES:
        raise InvalidSchema("#", f"it takes {len(text):,} bytes, at most {MAX_SCHEMA_BYTES:,} are allowed")
    return orjson.loads(text)


def _with_object_root(schema: Schema, repairs: list[str]) -> Schema:
    kind = schema.get("type")
    if kind == "object":
        return schema
    if kind is not None:
        raise InvalidSchema("#/type", "arguments are an object, so the type must be 'object'")
    repairs.append("#/type was missing: 'object' was put in")
    return {"type": "object", **schema}
