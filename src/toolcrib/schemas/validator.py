"""A schema made ready to validate, once: nothing is fetched, and no pattern and no value can run away."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

from toolcrib.model import JsonObject
from toolcrib.schemas.bounds import NODES, measure
from toolcrib.schemas.cost import ValidationCost, effort
from toolcrib.schemas.errors import InvalidSchema
from toolcrib.schemas.explain import ValidationFault, explain
from toolcrib.schemas.patterns import pattern_options, without_unsafe
from toolcrib.schemas.subschemas import Schema, survey

MOST_WORK = 20_000_000
"""How often values may be looked at in one validation: about a quarter of a second."""
MOST_ERRORS = 5_000
"""How many errors may be collected for an explanation: the library makes all before it shows the first."""
MOST_FAULTS = 10

_LIBRARY_GAVE_UP = (ValueError, RuntimeError)
"""A Python object that is not JSON; a schema the library has compiled and cannot run."""


class Validator:
    """A compiled schema. Values must keep within the bounds of `too_deep`: the library recurses."""

    def __init__(
        self,
        schema: Schema,
        compiled: jsonschema_rs.Validator,
        effort: ValidationCost,
        unchecked: tuple[str, ...],
    ) -> None:
        self.unchecked = unchecked
        """Where patterns stand that cannot be run in linear time; they are not checked."""
        self._schema = schema
        self._compiled = compiled
        self._effort = effort
        self._always_light = effort.paths * NODES <= MOST_WORK

    def ok(self, instance: Any) -> bool:
        """Whether a value fits."""
        try:
            return (self._always_light or self._is_light(instance)) and self._compiled.is_valid(instance)
        except _LIBRARY_GAVE_UP:
            return False

    def faults(self, instance: Any, prefix: str = "arguments") -> tuple[ValidationFault, ...]:
        """Say what does not fit, at most ten things; empty where all does."""
        if self.ok(instance):
            return ()
        if not self._is_light(instance):
            return (_whole(prefix, "a smaller value", "is too large to be checked against its schema"),)
        try:
            errors = self._errors(instance)
        except _LIBRARY_GAVE_UP as error:
            return (_whole(prefix, "JSON", f"must be JSON that can be checked: {error}"),)
        faults = tuple(islice(explain(errors, schema=self._schema, prefix=prefix), MOST_FAULTS))
        if faults:
            return faults
        return (_whole(prefix, "another value", "does not fit its schema; it cannot be said where"),)

    def _is_light(self, instance: Any) -> bool:
        return measure(instance)[1] * self._effort.paths <= MOST_WORK

    def _errors(self, instance: Any) -> Iterable[jsonschema_rs.ValidationError]:
        """Collect as much as can be afforded: every error, the first one, or none."""
        depth, nodes = measure(instance)
        limits = self._effort
        if limits.errors(depth, nodes) <= MOST_ERRORS:
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
    """Make a validator of a schema that has passed `check`; what is unsafe raises BadSchema here too."""
    # Without an address of its own a schema cannot stand in for another, nor be looked up under it.
    plain = {keyword: value for keyword, value in schema.items() if keyword != "$id"}
    places = survey(plain)
    limits = effort(places)
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
    """Give a schema to the library with every way out closed; raises ValueError where it is wrong."""
    return jsonschema_rs.validator_for(
        schema, retriever=_fetch_nothing, validate_formats=False, pattern_options=options
    )


def _fetch_nothing(uri: str) -> NoReturn:
    raise LookupError("references must stay inside the schema")


def _refusal(error: ValueError) -> InvalidSchema:
    """Point at what the metaschema or the library objects to."""
    if not isinstance(error, jsonschema_rs.ValidationError):
        return InvalidSchema("#", f"it is not JSON: {error}")
    fault = next(explain([error], schema={}, prefix="#"))
    steps = "".join([f"/{step}" for step in error.instance_path])
    return InvalidSchema(
        f"#{steps}", f"the schema is wrong: it {fault.message.removeprefix(f'{fault.path}: ')}"
    )


def _whole(prefix: str, expected: str, sentence: str) -> ValidationFault:
    return ValidationFault(prefix, expected, f"{prefix}: {sentence}")
