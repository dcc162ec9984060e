"""Words are the same however they are spelled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.search.words import stem, words

pytestmark = pytest.mark.requirement("F8")


@pytest.mark.parametrize(
    "text, parts",
    [
        ("readFile", ["read", "file"]),
        ("read_file", ["read", "file"]),
        ("READ-File", ["read", "file"]),
        ("parseHTTPResponse", ["parse", "http", "response"]),
        ("IDs and URLs", ["ids", "and", "urls"]),
        ("mp3 to B-12", ["mp3", "to", "b", "12"]),
        ("Übergröße, café", ["ubergrosse", "cafe"]),
        ("ÜberGröße", ["uber", "grosse"]),
        ("ﬁle ＴＷＯ", ["file", "two"]),
        ("记个笔记 today", ["记个", "个笔", "笔记", "today"]),
        ("v2版本", ["v2", "版本"]),
        ("한국어 날씨", ["한국어", "날씨"]),
        ("字", ["字"]),
        ("", []),
        ("… — !", []),
    ],
)
def test_text_is_taken_apart(text: str, parts: list[str]) -> None:
    assert list(words(text)) == parts


@pytest.mark.parametrize(
    "forms",
    [
        ("card", "cards"),
        ("query", "queries"),
        ("search", "searches", "searching", "searched"),
        ("create", "creates", "creating", "created"),
        ("box", "boxes"),
        ("run", "runs", "running"),
        ("add", "adds", "adding", "added"),
        ("call", "calls", "calling", "called"),
        ("address", "addresses"),
        ("setting", "settings"),
        ("note", "notes"),
        ("move", "moves", "moving", "moved"),
    ],
)
def test_forms_of_a_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1, [stem(form) for form in forms]


@pytest.mark.parametrize("word", ["string", "status", "class", "speed", "this", "id", "2024s", "größe"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    assert stem(word) == word


@given(st.text())
def test_every_text_has_words_and_case_does_not_count_in_them(text: str) -> None:
    for word in words(text):
        assert word
        assert word == word.casefold()
        assert stem(word)


def test_a_character_that_stands_for_a_sentence_does_not_multiply() -> None:
    assert len("".join(words("\ufdfa" * 4_000))) < 20_000
    assert len("".join(words("한" * 4_000))) >= 4_000
