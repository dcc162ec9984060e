"""No secret gets past the redactor: not by value, not by shape, not by the name of its field."""

from json import dumps, loads
from time import perf_counter
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.observe import MASK, Redactor

pytestmark = pytest.mark.requirement("I2")

secrets = st.text(st.characters(exclude_categories=["Cs", "Z"]), min_size=6, max_size=40).filter(
    lambda text: text == text.strip() and text not in MASK
)
anything = st.text(max_size=40)


@given(secrets, anything, anything)
def test_known_secret_is_masked_anywhere(secret: str, before: str, after: str) -> None:
    assert secret not in Redactor([secret]).text(before + secret + after).replace(MASK, "")


@given(secrets)
def test_known_secret_is_masked_in_any_encoding(secret: str) -> None:
    redactor = Redactor([secret])
    for written in (
        dumps(secret)[1:-1],
        repr(secret)[1:-1],
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
    ):
        assert written not in redactor.text(f"<{written}>").replace(MASK, "")


@given(
    st.recursive(
        secrets, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(secrets, inner, max_size=3)
    )
)
def test_known_secret_is_masked_at_any_depth(tree: Any) -> None:
    known = sorted(set(_texts(tree)))
    cleaned = dumps(Redactor(known).clean(tree), ensure_ascii=False)
    assert set(_texts(loads(cleaned))) <= {MASK, "[cut off]"}


def test_longer_secret_is_masked_first() -> None:
    redactor = Redactor(["abcdef", "abcdefghij", "cdefgh"])
    assert redactor.text("abcdefghij abcdef") == f"{MASK} {MASK}"


@pytest.mark.parametrize(
    "text, cleaned",
    [
        ("Authorization: Bearer abc.def-ghi\nHost: x", f"Authorization: {MASK}\nHost: x"),
        ("authorization=Basic dXNlcjpwYXNz, more", f"authorization={MASK}, more"),
        ("got Basic dXNlcjpwYXNz today", f"got Basic {MASK} today"),
        ("got bearer abcdef123 today", f"got bearer {MASK} today"),
        ("{'Authorization': 'Bearer x y', 'n': 1}", f"{{'Authorization': {MASK}, 'n': 1}}"),
        ("[(b'cookie', b'sid=1; b=2'), (b'host', b'h')]", f"[(b'cookie', {MASK}), (b'host', b'h')]"),
        ("Set-Cookie: sid=1; HttpOnly\nHost: x", f"Set-Cookie: {MASK}\nHost: x"),
        ("the key tc_Zm9vYmFyYmF6 works", f"the key {MASK} works"),
        ("postgresql://me:pa55@db/x", f"postgresql://{MASK}@db/x"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl ok", f"{MASK} ok"),
        ("?api_key=abc&q=1", f"?api_key={MASK}&q=1"),
        ("apiKey='a b', other=1", f"apiKey={MASK}, other=1"),
        ('{"client_secret": "a\\"b", "n": 1}', f'{{"client_secret": {MASK}, "n": 1}}'),
        (r'"{\"password\": \"a b\", \"n\": 1}"', rf'"{{\"password\": {MASK}, \"n\": 1}}"'),
        ('password: "never closed', f"password: {MASK}"),
        (r"password: \"never closed", f"password: {MASK}"),
        ("PASSWORD = hunter2;", f"PASSWORD = {MASK};"),
        ("access_token: 12345", f"access_token: {MASK}"),
        (f"token={MASK} x", f"token={MASK} x"),
    ],
)
def test_secret_patterns_are_masked(text: str, cleaned: str) -> None:
    assert Redactor().text(text) == cleaned
    assert Redactor().text(cleaned) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        "max_tokens=512, tokens: 7",
        "the secretary: Bob",
        "4bf92f35-77b3-4da6-a3ce-929d0e0e4736",
        "https://example.com/a:b",
        "TOOL_FAILED: no token was given",
        "a basic validation failed",
    ],
)
def test_other_text_is_unchanged(text: str) -> None:
    assert Redactor(["abc", "12", ""]).text(text) == text


def test_short_value_is_masked_only_by_field_name() -> None:
    redactor = Redactor(["on"])
    assert redactor.text("password=on, switched on") == f"password={MASK}, switched on"
    assert redactor.clean({"password": "on", "state": "on"}) == {"password": MASK, "state": "on"}


def test_non_text_secret_is_ignored() -> None:
    assert Redactor(["not\udcffutf-8"]).text("a not\udcffutf-8 b") == f"a {MASK} b"


def test_secret_field_names_are_masked() -> None:
    cleaned = Redactor().clean(
        {
            "Password": 1234,
            "api-key": ["a"],
            "nested": [{"Set-Cookie": {"a": 1}, "tokens": ["x"], "total_tokens": 12}],
            "secret": None,
            "fine": True,
        }
    )
    assert cleaned == {
        "Password": MASK,
        "api-key": MASK,
        "nested": [{"Set-Cookie": MASK, "tokens": MASK, "total_tokens": 12}],
        "secret": None,
        "fine": True,
    }


def test_non_json_values_are_masked_as_text() -> None:
    cleaned = Redactor(["hunter22"]).clean(
        {"bytes": b"hunter22", "error": ValueError("hunter22"), "set": {1}}
    )
    assert cleaned == {"bytes": f"b'{MASK}'", "error": MASK, "set": [1]}


def test_deep_and_large_values_are_cut_off() -> None:
    deep: Any = "bottom"
    for _ in range(100):
        deep = [deep]
    assert "bottom" not in str(Redactor().clean(deep))
    assert len(Redactor().clean(list(range(100_000)))) <= 1_001
    assert len(Redactor().clean({str(number): number for number in range(100_000)})) <= 1_001
    assert len(str(Redactor().clean([[number] for number in range(100_000)]))) < 20_000
    assert len(Redactor().clean("x" * 100_000)) < 10_000


def test_a_secret_can_be_learned_later() -> None:
    redactor = Redactor()
    names = ("fresh-secret", None)
    assert redactor.passes(names)
    assert redactor.passes(names)
    redactor.learn("fresh-secret")
    assert redactor.text("a fresh-secret b") == f"a {MASK} b"
    assert not redactor.passes(names)


def test_secrets_are_learned_in_bulk() -> None:
    redactor = Redactor()
    secrets = [f"a secret of number {number}" for number in range(300)]
    redactor.learn(*secrets)
    assert redactor.learned == 2
    redactor.learn(*secrets)
    assert redactor.learned == 2
    assert redactor.text(secrets[-1]) == MASK


def test_learned_secrets_are_bounded() -> None:
    redactor = Redactor()
    for number in range(3_000):
        redactor.learn(f"tc_{number:032}")
    redactor.learn("learned first")
    for number in range(2_000):
        redactor.learn(f"tc_{number:032}")
    assert redactor.text("learned first, tc_00000000") == f"{MASK}, {MASK}"
    redactor = Redactor(["learned first", *(f"a secret {number:04}" for number in range(3_000))])
    assert redactor.text("learned first, a secret 2999") == f"learned first, {MASK}"


def test_remembered_names_are_bounded() -> None:
    redactor = Redactor()
    assert all(redactor.passes((f"user {number}",)) for number in range(25_000))
    assert len(vars(redactor)["_clean_words"]) <= 10_000


def test_masking_time_is_bounded() -> None:
    hostile = (
        "token=\\'" * 20_000,
        'password="' * 20_000,
        "eyJ-" * 20_000,
        "://a:b" * 20_000,
        "secret\\" * 20_000,
    )
    started = perf_counter()
    for text in hostile:
        Redactor().text(text)
    assert (
        perf_counter() - started < 10
    )  # a tenth of a second, unless some text costs the square of its length


def _texts(tree: Any) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    if isinstance(tree, list):
        return [text for item in tree for text in _texts(item)]  # pyright: ignore[reportUnknownVariableType]
    return [text for name, value in tree.items() for text in (name, *_texts(value))]
