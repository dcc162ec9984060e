"""What a model is told of a result keeps its caps, and every cut keeps its characters whole."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib import payloads
from toolcrib.interfaces import ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Result
from toolcrib.payloads import MAX_SHORT_MESSAGE_CHARS, truncate_payload

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
DATA = st.recursive(
    st.none() | st.integers(-(2**53), 2**53) | TEXTS.map(lambda text: text * 50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def result_payload(result: Result, hints: str | JsonObject = "", *, data: bool = True) -> JsonObject:
    outcome = ProviderResult(call=ProviderCall(id="", name="look"), result=result, hints=hints)
    return payloads.result_payload(outcome, data=data)


def block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.mark.requirement("G3")
@settings(max_examples=200)
@given(data=DATA, message=TEXTS.map(lambda text: text * 20), most=st.integers(60, 4_000))
def test_no_cap_is_ever_exceeded(data: Any, message: str, most: int) -> None:
    whole = result_payload(Result(data=data, message=message))
    said = truncate_payload(whole, most)
    raw = orjson.dumps(said)
    assert len(raw) <= most
    assert orjson.loads(raw) == said
    assert said["status"] == "success"
    assert message.startswith(said["message"])
    assert said == whole or "data" not in said or said["truncated"] is True


@pytest.mark.requirement("G3")
def test_too_long_text_is_detected_early() -> None:
    said = truncate_payload(result_payload(Result(data="é" * 10_000, message="Read.")), 12_000)
    assert said["data"] == "é" * (len(said["data"]) - 1) + "…"
    assert 11_990 < len(orjson.dumps(said)) <= 12_000


@pytest.mark.requirement("G3")
def test_server_texts_are_unchanged() -> None:
    result = Result(content=(block('a "quoted" word'), block("x" * 5_000)), message="Read.")
    assert truncate_payload(result_payload(result), 1_000)["data"].startswith('a "quoted" word\nxxx')


@pytest.mark.requirement("G3", "F10")
def test_hints_are_left_out_before_data_is_cut() -> None:
    result = Result(data="x" * 900, message="Read.")
    whole, without = result_payload(result, "Next: look {}"), result_payload(result)
    assert whole == {**without, "hints": "Next: look {}"}
    size = len(orjson.dumps(whole))
    assert truncate_payload(whole, size) == whole
    assert truncate_payload(whole, size - 1) == without
    assert truncate_payload(whole, 500) == truncate_payload(without, 500)


@pytest.mark.requirement("G3")
def test_correlation_fields_survive_truncation() -> None:
    result = Result(data={"will_hangup": True, "extension": "12", "log": "x" * 5_000}, message="Bye.")
    said = truncate_payload(result_payload(result), 1_000)
    assert (said["will_hangup"], said["extension"], said["truncated"]) == (True, "12", True)
    assert truncate_payload(result_payload(result), 120) == {
        "status": "success",
        "message": "Bye.",
        "will_hangup": True,
        "extension": "12",
    }


@pytest.mark.requirement("G3")
def test_a_message_that_does_not_fit_is_cut_to_800() -> None:
    result = Result(data={"destination": "x" * 9_000}, message="y" * 5_000)
    assert truncate_payload(result_payload(result, data=False), 8_000) == {
        "status": "success",
        "message": "y" * MAX_SHORT_MESSAGE_CHARS,
    }
