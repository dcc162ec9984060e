"""Normalization of words for search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.search.index import stem, words

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
def test_text_is_split_into_words(text: str, parts: list[str]) -> None:
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
def test_word_forms_are_stemmed(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1, [stem(form) for form in forms]


@pytest.mark.parametrize("word", ["string", "status", "class", "speed", "this", "id", "2024s", "größe"])
def test_ending_lookalikes_are_kept(word: str) -> None:
    assert stem(word) == word


@given(st.text())
def test_words_are_case_insensitive(text: str) -> None:
    for word in words(text):
        assert word
        assert word == word.casefold()
        assert stem(word)


def test_ligature_expansion_is_bounded() -> None:
    assert len("".join(words("\ufdfa" * 4_000))) < 20_000
    assert len("".join(words("한" * 4_000))) >= 4_000
