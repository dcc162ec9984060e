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


def pattern_options(subschemas: Iterable[Subschema]) -> jsonschema_rs.RegexOptions:
    """Select the linear-time engine, and divide the memory among the patterns."""
    distinct = {
        pattern
        for subschema in subschemas
        for pattern in (*_own_pattern(subschema), *_member_patterns(subschema))
    }
    if len(distinct) > MAX_PATTERNS:
        raise InvalidSchema("#", f"it has more than {MAX_PATTERNS} different patterns")
    return jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES // max(1, len(distinct)))


def without_unsafe(schema: Schema, options: jsonschema_rs.RegexOptions) -> tuple[Schema, tuple[str, ...]]:
    """Copy a schema without patterns the engine rejects, such as look-around; return their paths too."""
    copy = deepcopy(schema)
    dropped: list[str] = []
    for subschema in index_subschemas(copy).values():
        # Members with an unsupported pattern would become unknown, and perhaps rejected, so it is an error.
        if not all(_is_supported(pattern, options) for pattern in _member_patterns(subschema)):
            raise InvalidSchema(
                f"{subschema.path}/patternProperties", "a pattern is invalid, too large or uses look-around"
            )
        if not all(_is_supported(pattern, options) for pattern in _own_pattern(subschema)):
            del subschema.schema["pattern"]
            dropped.append(f"{subschema.path}/pattern")
    return copy, tuple(sorted(dropped))


def _own_pattern(subschema: Subschema) -> tuple[str, ...]:
    pattern: Any = subschema.schema.get("pattern")
    return (pattern,) if isinstance(pattern, str) else ()


def _member_patterns(subschema: Subschema) -> tuple[str, ...]:
    patterns: Any = subschema.schema.get("patternProperties")
    return tuple(patterns) if isinstance(patterns, dict) else ()  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


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
        maximum = self.visits * self.growth**depth
        return nodes * (maximum if self.recursive else min(maximum, self.paths))


def validation_cost(index: SubschemaIndex) -> ValidationCost:
    """Calculate the cost of a schema; raise InvalidSchema if it is unbounded or too high."""
    same_value = {key: _same_value_edges(subschema) for key, subschema in index.items()}
    order = _postorder(same_value)
    _check_chains(order, same_value, index)
    paths, recursive = _count_paths(same_value, index)
    return ValidationCost(
        paths=paths,
        visits=_largest_sum(order, same_value, index, lambda _: 1),
        growth=max(
            _largest_sum(order, same_value, index, _member_keywords),
            _largest_sum(order, same_value, index, _item_keywords),
            1,
        ),
        recursive=recursive,
        branching=any(
            "anyOf" in subschema.schema or "oneOf" in subschema.schema for subschema in index.values()
        ),
    )


def _same_value_edges(subschema: Subschema) -> Sequence[int]:
    # `unevaluated*` evaluates the subschemas of the same value a second time.
    if subschema.same_value and (
        "unevaluatedProperties" in subschema.schema or "unevaluatedItems" in subschema.schema
    ):
        return subschema.same_value * 2
    return subschema.same_value


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


def _check_chains(order: Sequence[int], same_value: Edges, index: SubschemaIndex) -> None:
    chains: dict[int, int] = {}
    for key in order:
        longest = 0
        for target in same_value[key]:
            if target not in chains:
                raise InvalidSchema(
                    index[key].path, "it refers to itself for the same value, which never ends"
                )
            longest = max(longest, chains[target])
        if longest >= MAX_SUBSCHEMA_CHAIN:
            raise InvalidSchema(
                index[key].path, f"more than {MAX_SUBSCHEMA_CHAIN} chained subschemas apply to one value"
            )
        chains[key] = longest + 1


def _count_paths(same_value: Edges, index: SubschemaIndex) -> tuple[int, bool]:
    """Return the highest number of paths from any subschema, and whether the schema is recursive."""
    edges = {key: [*same_value[key], *subschema.nested] for key, subschema in index.items()}
    path_counts: dict[int, int] = {}
    recursive = False
    for key in _postorder(edges):
        count = _own_cost(index[key].schema)
        for target in edges[key]:
            # In postorder, a target without a count is part of a cycle.
            recursive = recursive or target not in path_counts
            count += path_counts.get(target, 1)
        if count > MAX_SCHEMA_PATHS:
            raise InvalidSchema("#", f"it has more than {MAX_SCHEMA_PATHS:,} paths; nest fewer references")
        path_counts[key] = count
    return max(path_counts.values()), recursive


def _largest_sum(
    order: Sequence[int], same_value: Edges, index: SubschemaIndex, count_of: Callable[[Schema], int]
) -> int:
    """Add each subschema's count to those of all it applies to the same value; return the maximum."""
    sums: dict[int, int] = {}
    for key in order:
        count = count_of(index[key].schema)
        for target in same_value[key]:
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
    has_plain = "properties" in schema or "additionalProperties" in schema
    pattern_count = len(patterns) if isinstance(patterns, dict) else 0  # pyright: ignore[reportUnknownArgumentType]
    return has_plain + pattern_count + ("unevaluatedProperties" in schema)


def _item_keywords(schema: Schema) -> int:
    """Return how many keywords can apply to the same item of an array."""
    has_plain = "items" in schema or "prefixItems" in schema or "additionalItems" in schema
    return has_plain + ("contains" in schema) + ("unevaluatedItems" in schema)


# --- Compiled JSON Schema validators with bounded time for any value or pattern ---

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
        cost: ValidationCost,
        unchecked: tuple[str, ...],
    ) -> None:
        self.unchecked = unchecked
        """Paths of patterns that cannot run in linear time; they are not checked."""
        self._schema = schema
        self._compiled = compiled
        self._cost = cost
        # Cheap schemas need no measurement: even the largest value stays within the bound.
        self._always_cheap = cost.paths * MAX_JSON_VALUES <= MAX_EVALUATIONS

    def ok(self, instance: Any) -> bool:
        """Return whether a value is valid."""
        try:
            return (self._always_cheap or self._is_cheap(instance)) and self._compiled.is_valid(instance)
        except _LIBRARY_ERRORS:
            return False

    def faults(self, instance: Any, prefix: str = "arguments") -> tuple[ValidationFault, ...]:
        """Return at most ten validation errors; empty if the value is valid."""
        if self.ok(instance):
            return ()
        if not self._is_cheap(instance):
            return (
                _fault_of_value(prefix, "a smaller value", "is too large to be validated against its schema"),
            )
        try:
            errors = self._errors(instance)
        except _LIBRARY_ERRORS as error:
            return (_fault_of_value(prefix, "JSON", f"must be JSON that can be validated: {error}"),)
        faults = tuple(islice(explain(errors, schema=self._schema, prefix=prefix), MAX_VALIDATION_FAULTS))
        if faults:
            return faults
        return (
            _fault_of_value(prefix, "a matching value", "does not match its schema; the location is unknown"),
        )

    def _is_cheap(self, instance: Any) -> bool:
        return measure(instance)[1] * self._cost.paths <= MAX_EVALUATIONS

    def _errors(self, instance: Any) -> Iterable[jsonschema_rs.ValidationError]:
        """Collect as many errors as the cost bounds allow: all, the first one, or none."""
        depth, nodes = measure(instance)
        cost = self._cost
        if cost.errors(depth, nodes) <= MAX_COLLECTED_ERRORS:
            return self._compiled.iter_errors(instance)
        if cost.branching or (cost.recursive and cost.growth > 1):
            return ()
        errors: list[jsonschema_rs.ValidationError] = []
        try:
            self._compiled.validate(instance)
        except jsonschema_rs.ValidationError as error:
            errors.append(error)
        return errors


def compile_schema(schema: JsonObject) -> Validator:
    """Compile a schema that has passed `check`; raise InvalidSchema if it is unsafe."""
    # Without `$id`, a schema cannot be resolved under another schema's identifier.
    without_id = {keyword: value for keyword, value in schema.items() if keyword != "$id"}
    index = index_subschemas(without_id)
    cost = validation_cost(index)
    options = pattern_options(index.values())
    try:
        return Validator(without_id, validator_of(without_id, options), cost, ())
    except ValueError as error:
        safe, unchecked = without_unsafe(without_id, options)
        if not unchecked:
            raise _refusal(error) from error
    try:
        return Validator(without_id, validator_of(safe, options), cost, unchecked)
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
        f"#{steps}", f"the schema is invalid: it {fault.message.removeprefix(f'{fault.path}: ')}"
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
    copy = _bounded_copy(cast("Mapping[str, Any]", schema))
    repairs: list[str] = []
    if copy.pop("$id", None) is not None:
        repairs.append("#/$id was removed: references must stay inside the schema")
    if root == "object":
        copy = _with_object_root(copy, repairs)
    validator = compile_schema(copy)
    repairs += [f"{path} is not checked here: it cannot be executed safely" for path in validator.unchecked]
    return GuardedSchema(copy, tuple(repairs))


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
        raise InvalidSchema(
            "#", f"it has {len(text):,} bytes, which exceeds the limit of {MAX_SCHEMA_BYTES:,}"
        )
    return orjson.loads(text)


def _with_object_root(schema: Schema, repairs: list[str]) -> Schema:
    kind = schema.get("type")
    if kind == "object":
        return schema
    if kind is not None:
        raise InvalidSchema("#/type", "arguments are an object, so the type must be 'object'")
    repairs.append("#/type was missing: 'object' was added")
    return {"type": "object", **schema}
