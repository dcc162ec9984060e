"""Hooks of Schemathesis: they supply what JSON Schema cannot express; run in its own environment."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import json
from typing import Any

import schemathesis
from hypothesis import strategies as st

YEARS = 4000
"""A multiple of 400, after which the calendar repeats itself."""

schemathesis.openapi.format("time-zone", st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]))
schemathesis.openapi.format("uri", st.sampled_from(["https://app.example.com", "http://127.0.0.1:9/hook"]))


@schemathesis.hook
def map_case(context: Any, case: Any) -> Any:
    """Make positive data fit the rules that span fields, time or a text inside a text."""
    del context
    if case.meta is not None and case.meta.generation.mode.is_positive:
        # Headers that no operation describes are generated too; the gateway refuses such names.
        _drop(case, [name for name in case.headers or () if "_" in name])
        if isinstance(case.body, dict):
            _mend(case, case.body)
    return case


def _drop(case: Any, names: list[str]) -> None:
    for name in names:
        del case.headers[name]


def _mend(case: Any, body: dict[str, Any]) -> None:
    if isinstance(body.get("arguments"), str):
        body["arguments"] = json.dumps({"text": body["arguments"]})
    if body.get("expires") is not None:
        body["expires"] = _in_the_future(body["expires"])
    if body.get("idempotencyKey") is not None:
        # Both must be the same, and a generated pair never is.
        _drop(case, [name for name in case.headers or () if name.lower() == "idempotency-key"])


def _in_the_future(moment: Any) -> Any:
    if isinstance(moment, str):
        year = int(moment[:4])
        return moment if year >= YEARS else f"{year + YEARS:04}{moment[4:]}"
    return moment if moment > 1e10 else moment + 1e10
