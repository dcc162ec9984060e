"""Properties of fitting: lossless fits are equivalent, losses are reported, it never fails."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.schemas.fitting.drawn import allowed, meant, mild, objects, schemas, stands
from toolcrib.model import JsonObject
from toolcrib.schemas import InvalidSchema, check, compile_schema
from toolcrib.schemas.fitting.dialects import (
    ANTHROPIC,
    DEEPGRAM,
    DIALECTS,
    ELEVENLABS,
    GEMINI,
    OPENAI,
    OPENAI_STRICT,
)
from toolcrib.schemas.fitting.fit import Dialect, fit

LOOSE = {name: dialect for name, dialect in DIALECTS.items() if not dialect.strict}
PLACED = Dialect(root_unions=False, items_said=True)
"""All keywords, with references put in place."""
values = st.lists(objects, min_size=1, max_size=10)


def let_in(schema: JsonObject) -> JsonObject:
    """Take a schema in, as a gateway does; try another where it would be refused."""
    try:
        return check(schema).schema
    except InvalidSchema:
        assume(condition=False)
        raise


def keeps_its_promise(schema: JsonObject, dialect: Dialect, samples: list[Any]) -> None:
    given = let_in(schema)
    fitted = fit(given, dialect)
    for loss in fitted.losses:
        assert stands(given, loss.path, loss.keyword), loss
        assert loss.message
    said = meant(fitted.schema, dialect)
    again = fit(said, dialect)
    assert (again.schema, again.losses) == (fitted.schema, ())
    if not fitted.losses:
        before, after = compile_schema(given), compile_schema(check(said).schema)
        for sample in samples:
            assert before.ok(sample) == after.ok(sample), sample


@pytest.mark.requirement("F2")
@pytest.mark.parametrize("dialect", [GEMINI, ANTHROPIC], ids=["gemini", "anthropic"])
@settings(max_examples=25)
@given(schema=schemas() | mild(), samples=values)
def test_lossless_fit_accepts_the_same_values(
    schema: JsonObject, samples: list[Any], dialect: Dialect
) -> None:
    keeps_its_promise(schema, dialect, samples)


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.requirement("F2")
@pytest.mark.parametrize("dialect", [*LOOSE.values(), PLACED], ids=[*LOOSE, "placed"])
@settings(max_examples=200)
@given(schema=schemas() | mild(), samples=values)
def test_lossless_fit_is_equivalent_for_every_dialect(
    schema: JsonObject, samples: list[Any], dialect: Dialect
) -> None:
    keeps_its_promise(schema, dialect, samples)


@pytest.mark.no_cover
@pytest.mark.slow
@settings(max_examples=150)
@given(schema=schemas(), samples=values)
def test_fit_accepts_at_least_the_original_values(schema: JsonObject, samples: list[Any]) -> None:
    given = let_in(schema)
    fitted = fit(given, Dialect(keywords=GEMINI.keywords, type_lists=False, nullable=True))
    before, after = compile_schema(given), compile_schema(check(meant(fitted.schema, GEMINI)).schema)
    for sample in samples:
        assert after.ok(sample) or not before.ok(sample)


@pytest.mark.no_cover
@pytest.mark.slow
@settings(max_examples=150)
@given(schema=schemas())
def test_strict_schemas_report_losses(schema: JsonObject) -> None:
    given = let_in(schema)
    assert all(stands(given, loss.path, loss.keyword) for loss in fit(given, OPENAI_STRICT).losses)


@pytest.mark.requirement("F2")
@settings(max_examples=25)
@given(schema=allowed(bounds=True))
def test_supported_schema_is_unchanged(schema: JsonObject) -> None:
    for dialect in (GEMINI, DEEPGRAM, ANTHROPIC):
        fitted = fit(schema, dialect)
        assert (fitted.schema, fitted.losses) == (schema, ())


@settings(max_examples=25)
@given(schema=allowed(bounds=False))
def test_schema_every_dialect_supports_is_unchanged(schema: JsonObject) -> None:
    for dialect in (OPENAI, ELEVENLABS, Dialect()):
        fitted = fit(schema, dialect)
        assert (fitted.schema, fitted.losses) == (schema, ())


@settings(max_examples=25)
@given(schema=schemas())
def test_fit_does_not_mutate_its_input(schema: JsonObject) -> None:
    given = let_in(schema)
    before = check(given).schema
    for dialect in DIALECTS.values():
        fit(given, dialect)
    assert given == before
