"""Static upper bounds for the cost of validating against a schema."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.schemas.errors import InvalidSchema
from toolcrib.schemas.subschemas import Schema, Subschema

MOST_PATHS = 10_000
"""Paths through a schema: nested unions of shared definitions double them with each level."""
LONGEST_CHAIN = 64
"""Chained subschemas that apply to one value. The validator recurses: chain times depth is its stack."""

Edges = Mapping[int, Sequence[int]]
Places = Mapping[int, Subschema]


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


def effort(places: Places) -> ValidationCost:
    """Calculate the cost of a schema; raise InvalidSchema if it is unbounded or too high."""
    here = {key: _looks_here(place) for key, place in places.items()}
    order = _inside_out(here)
    _refuse_chains(order, here, places)
    paths, recursive = _paths(here, places)
    return ValidationCost(
        paths=paths,
        visits=_most(order, here, places, lambda _: 1),
        growth=max(_most(order, here, places, _member_looks), _most(order, here, places, _item_looks), 1),
        recursive=recursive,
        branching=any("anyOf" in place.schema or "oneOf" in place.schema for place in places.values()),
    )


def _looks_here(place: Subschema) -> Sequence[int]:
    # `unevaluated*` evaluates the subschemas of the same value a second time.
    if place.here and ("unevaluatedProperties" in place.schema or "unevaluatedItems" in place.schema):
        return place.here * 2
    return place.here


def _inside_out(edges: Edges) -> list[int]:
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


def _refuse_chains(order: Sequence[int], here: Edges, places: Places) -> None:
    chains: dict[int, int] = {}
    for key in order:
        longest = 0
        for target in here[key]:
            if target not in chains:
                raise InvalidSchema(places[key].path, "it refers to itself without going a level deeper")
            longest = max(longest, chains[target])
        if longest >= LONGEST_CHAIN:
            raise InvalidSchema(places[key].path, f"more than {LONGEST_CHAIN} steps are chained on one value")
        chains[key] = longest + 1


def _paths(here: Edges, places: Places) -> tuple[int, bool]:
    """Return the highest number of paths from any subschema, and whether the schema is recursive."""
    edges = {key: [*here[key], *place.below] for key, place in places.items()}
    ways: dict[int, int] = {}
    recursive = False
    for key in _inside_out(edges):
        count = _own(places[key].schema)
        for target in edges[key]:
            # In postorder, a target without a count is part of a cycle.
            recursive = recursive or target not in ways
            count += ways.get(target, 1)
        if count > MOST_PATHS:
            raise InvalidSchema(
                "#", f"there are more than {MOST_PATHS:,} ways through it; nest fewer references"
            )
        ways[key] = count
    return max(ways.values()), recursive


def _most(order: Sequence[int], here: Edges, places: Places, own: Callable[[Schema], int]) -> int:
    """Add each subschema's count to those of all it applies to the same value; return the maximum."""
    sums: dict[int, int] = {}
    for key in order:
        count = own(places[key].schema)
        for target in here[key]:
            count += sums[target]
        sums[key] = count
    return max(sums.values())


def _own(schema: Schema) -> int:
    """Return one, plus one for each `enum` option that needs a deep comparison."""
    options: Any = schema.get("enum")
    if not isinstance(options, list):
        return 1
    return 1 + sum(isinstance(option, (dict, list)) for option in options)  # pyright: ignore[reportUnknownVariableType]


def _member_looks(schema: Schema) -> int:
    """Return how many keywords can apply to the same member of an object."""
    patterns: Any = schema.get("patternProperties")
    plain = "properties" in schema or "additionalProperties" in schema
    named = len(patterns) if isinstance(patterns, dict) else 0  # pyright: ignore[reportUnknownArgumentType]
    return plain + named + ("unevaluatedProperties" in schema)


def _item_looks(schema: Schema) -> int:
    """Return how many keywords can apply to the same item of an array."""
    plain = "items" in schema or "prefixItems" in schema or "additionalItems" in schema
    return plain + ("contains" in schema) + ("unevaluatedItems" in schema)
