"""Stored results round-trip."""

from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib import hints
from toolcrib.errors import CODES, problem
from toolcrib.formats import rest
from toolcrib.model import Problem, Result, Voice

text = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.none() | st.booleans() | numbers
json = st.recursive(
    plain | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(text, json, max_size=3)
problems: st.SearchStrategy[Problem] = st.builds(
    problem,
    st.sampled_from(list(CODES)),
    text,
    retryable=st.booleans(),
    retry_after=st.none() | st.floats(0, 100),
    path=st.none() | text,
    tool_code=st.none() | text,
    stage=st.none() | text,
    details=objects,
)
results = st.builds(
    Result,
    data=json,
    structured=st.booleans(),
    content=st.lists(objects, max_size=2).map(tuple),
    problem=st.none() | problems,
    message=text,
    voice=st.builds(Voice, suppress=st.booleans(), follow_ups=st.lists(text, max_size=2).map(tuple)),
    meta=objects,
)


@settings(max_examples=40)
@given(result=results)
def test_stored_result_round_trips(result: Result) -> None:
    back = rest.decode_stored(rest.encode_stored(result).decode())
    assert back == result
    assert rest.encode_stored(back) == rest.encode_stored(result)


def test_encoded_data_is_reused() -> None:
    spelled = rest.encode_stored(Result(data={"a": 1}, encoded=b'{"a":  1}'))
    assert b'{"a":  1}' in spelled
    assert rest.decode_stored(spelled.decode()).encoded == b'{"a":1}'


def test_stored_hints_keep_their_evidence() -> None:
    made = hints.created("card", "card_7", "hus", read="get-card", undo="remove-card", quality=0.9)
    back = rest.decode_stored(rest.encode_stored(Result(data=7, hints=made)).decode()).hints
    assert back is not None
    assert (back.as_json(), back.evidence) == (made.as_json(), made.evidence)
    assert back.evidence is not None
