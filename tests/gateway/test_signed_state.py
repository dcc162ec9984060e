"""Signed state: verified only for its caller, call and lifetime."""

import string
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcrib.errors import Broken, Refused
from toolcrib.gateway import StateSigner, bound_to
from toolcrib.gateway.multi_round_calls import MAX_STATE_BYTES
from toolcrib.testing import a_caller

SEAL = StateSigner(lambda: b"k" * 32, now=lambda: 1000.0)
SIGNS = string.ascii_letters + string.digits + "-_"
ALICE = a_caller(id="user:alice", user="alice")


def refusal(text: str, *, kind: str = "call", bound: bytes = b"b", seal: StateSigner = SEAL) -> str:
    with pytest.raises(Refused) as refused:
        seal.verify(kind, text, bound)
    problem = refused.value.problem
    assert (problem.code, problem.path) == ("INVALID_REQUEST", "state")
    return problem.message


@given(payload=st.text(), bound=st.binary())
@example(payload="", bound=b"")
@example(payload="\ud800", bound=b"")
def test_signed_state_round_trips(payload: str, bound: bytes) -> None:
    text = SEAL.sign("call", payload, bound, 60)
    assert set(text) <= set(SIGNS)
    assert SEAL.verify("call", text, bound) == payload


@given(payload=st.text(max_size=20), place=st.integers(min_value=0), bit=st.integers(0, 7))
def test_any_flipped_bit_is_refused(payload: str, place: int, bit: int) -> None:
    text = SEAL.sign("call", payload, b"b", 60)
    raw = bytearray(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    raw[place % len(raw)] ^= 1 << bit
    refusal(urlsafe_b64encode(raw).rstrip(b"=").decode())


@given(payload=st.text(max_size=20), place=st.integers(min_value=0), sign=st.sampled_from(SIGNS + "=+/ é\n"))
def test_changed_character_is_refused(payload: str, place: int, sign: str) -> None:
    text = SEAL.sign("call", payload, b"b", 60)
    place %= len(text)
    changed = text[:place] + sign + text[place + 1 :]
    if changed != text:
        refusal(changed)
    refusal(text[:place] + sign + text[place:])
    refusal(text[:place] + text[place + 1 :])


@given(text=st.text(alphabet=SIGNS) | st.text())
def test_unsigned_state_is_refused(text: str) -> None:
    refusal(text)


@given(first=st.text(max_size=4), second=st.text(max_size=4))
def test_parts_of_two_states_cannot_be_combined(first: str, second: str) -> None:
    text = SEAL.sign("call", first, second.encode(errors="surrogatepass"), 60)
    if first != second:
        refusal(text, bound=first.encode(errors="surrogatepass"))
    refusal(text, kind="call2", bound=second.encode(errors="surrogatepass"))


def test_every_refusal_has_the_same_message() -> None:
    text, now = SEAL.sign("call", "x", b"b", 60), [1060.0]
    seal = StateSigner(lambda: b"k" * 32, now=lambda: now[0])
    assert seal.verify("call", text, b"b") == "x"
    now[0] = 1061.0
    late = refusal(text, seal=seal)
    foreign = refusal(text, bound=b"c")
    other = refusal(text, seal=StateSigner(lambda: b"j" * 32, now=lambda: 1000.0))
    assert len({late, foreign, other, refusal("x"), refusal("x" * 1_000_000), refusal("é")}) == 1


def test_signing_key_is_created_lazily_and_once() -> None:
    made: list[bytes] = []

    def key() -> bytes:
        made.append(b"k" * 32)
        return made[-1]

    seal = StateSigner(key)
    assert made == []
    assert seal.verify("call", seal.sign("call", "x", b"b", 60), b"b") == "x"
    assert len(made) == 1


def test_signed_state_size_is_bounded() -> None:
    assert (
        SEAL.verify("call", SEAL.sign("call", "x" * MAX_STATE_BYTES, b"b", 60), b"b") == "x" * MAX_STATE_BYTES
    )
    with pytest.raises(Broken) as broken:
        SEAL.sign("call", "x" * (MAX_STATE_BYTES + 1), b"b", 60)
    assert broken.value.problem.code == "RESULT_TOO_LARGE"


@pytest.mark.check(6)
def test_state_is_bound_to_principal_context_tool_arguments() -> None:
    mine = bound_to(ALICE, "x:a", {"n": 1, "m": 2})
    assert mine == bound_to(ALICE, "x:a", {"m": 2, "n": 1})
    others = (
        bound_to(replace(ALICE, id="key:other"), "x:a", {"n": 1, "m": 2}),
        bound_to(replace(ALICE, user=None), "x:a", {"n": 1, "m": 2}),
        bound_to(replace(ALICE, context="other"), "x:a", {"n": 1, "m": 2}),
        bound_to(ALICE, "x:b", {"n": 1, "m": 2}),
        bound_to(ALICE, "x:a", {"n": 1, "m": 3}),
        bound_to(ALICE, "x:a", {"n": "1", "m": 2}),
    )
    assert len({mine, *others}) == len(others) + 1
