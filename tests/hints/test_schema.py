"""The JSON Schema of hints: it accepts valid hints and requires the eleven fields."""

import json

import pytest
from hypothesis import given

from tests.hint_fields import HINT_FIELD_SET
from tests.hints.values import sound_hints
from toolcrib.hints.field_table import schema
from toolcrib.hints.value_types import (
    ACTION_NAME,
    ACTION_NAMES,
    MAX_ITEMS,
    MAX_TEXT_CHARACTERS,
    SHARE,
    TEXT,
    TEXTS,
)
from toolcrib.model import Hints
from toolcrib.model.hints import Dependency, Impact, ResourceFacts
from toolcrib.schemas import compile_schema

WHOLE = compile_schema(schema())


@pytest.mark.requirement("E7")
@given(sound_hints)
def test_valid_hints_fit_the_schema(hints: Hints) -> None:
    assert WHOLE.faults(json.loads(json.dumps(hints.as_json()))) == ()


@pytest.mark.parametrize("field", sorted(HINT_FIELD_SET))
def test_schema_requires_all_eleven_fields(field: str) -> None:
    whole = Hints(confidence=0.5).as_json()
    assert WHOLE.ok(whole)
    assert not WHOLE.ok({key: value for key, value in whole.items() if key != field})


@pytest.mark.parametrize(
    "field, value",
    [
        ("confidence", 1.7),
        ("sourceQuality", "best"),
        ("suggestedNextActions", [{"action": "x"}]),
        ("estimatedImpact", {"benefit": 0.5}),
        (
            "relatedResources",
            [{"type": "a", "id": "b", "label": "c", "relevance": 1, "metadata": {"quality": 2}}],
        ),
        ("riskFactors", "none"),
    ],
)
def test_schema_rejects_invalid_fields(field: str, value: object) -> None:
    assert not WHOLE.ok({**Hints(confidence=0.5).as_json(), field: value})


def test_schema_of_each_part() -> None:
    assert schema(Dependency) == {
        "type": "object",
        "properties": {
            "action": ACTION_NAME.schema,
            "dependsOn": ACTION_NAMES.schema,
            "type": {"enum": ["required", "recommended", "optional"]},
            "reason": TEXT.schema,
        },
        "required": ["action", "dependsOn", "type"],
    }
    fields = schema()["properties"]
    assert fields["dependencies"] == {"type": "array", "items": schema(Dependency), "maxItems": MAX_ITEMS}
    assert fields["estimatedImpact"] == schema(Impact)
    assert "required" not in schema(ResourceFacts)
    assert TEXT.schema == {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARACTERS}
    assert TEXTS.schema == {"type": "array", "items": TEXT.schema, "maxItems": MAX_ITEMS}
    assert schema(ResourceFacts)["properties"]["quality"] == {
        "anyOf": [{"enum": ["high", "medium", "low", "unknown"]}, SHARE.schema]
    }
