"""Compiled JSON Schema validators that fetch no references and have bounded time for any value or pattern."""

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
"""Subschema evaluations allowed in one validation: about a quarter of a second."""
MOST_ERRORS = 5_000
"""Errors an explanation may collect: the library creates all of them before it returns the first."""
MOST_FAULTS = 10

_LIBRARY_GAVE_UP = (ValueError, RuntimeError)
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
        self._always_light = effort.paths * NODES <= MOST_WORK

    def ok(self, instance: Any) -> bool:
        """Return whether a value is valid."""
        try:
            return (self._always_light or self._is_light(instance)) and self._compiled.is_valid(instance)
        except _LIBRARY_GAVE_UP:
            return False

    def faults(self, instance: Any, prefix: str = "arguments") -> tuple[ValidationFault, ...]:
        """Return at most ten validation errors; empty if the value is valid."""
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
        """Collect as many errors as the cost bounds allow: all, the first one, or none."""
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
    """Compile a schema that has passed `check`; raise InvalidSchema if it is unsafe."""
    # Without `$id`, a schema cannot be resolved under another schema's identifier.
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


def _whole(prefix: str, expected: str, sentence: str) -> ValidationFault:
    return ValidationFault(prefix, expected, f"{prefix}: {sentence}")
