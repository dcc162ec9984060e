"""A function is strict where its arguments need nothing taken away again, however deep one looks."""

from typing import Any

import pytest

from toolcrib.schemas.wholly import wholly

N: dict[str, Any] = {"type": "integer"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize("schema", [closed(n=N), closed(all={"type": "array", "items": closed(n=N)})])
def test_what_leaves_no_choice_is_said_strictly_and_is_the_same(schema: dict[str, Any]) -> None:
    fitted = wholly(schema)
    assert fitted is not None
    assert fitted.losses == ()
    assert fitted.schema == schema


@pytest.mark.parametrize(
    "schema",
    [
        {**closed(n=N), "required": []},
        closed(inner={**closed(n=N), "required": []}),
        closed(all={"type": "array", "items": {**closed(n=N, m=N), "required": ["m"]}}),
        {**closed(n={"$ref": "#/$defs/n"}), "$defs": {"n": {**closed(n=N), "required": []}}},
        {"type": "object", "properties": {}},
        closed(n={"type": "object"}),
        closed(),
        closed(n=closed()),
    ],
)
def test_what_may_be_left_out_or_added_is_not(schema: dict[str, Any]) -> None:
    assert wholly(schema) is None
