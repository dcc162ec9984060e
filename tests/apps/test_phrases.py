"""Activation phrases by language."""

from typing import Any

import pytest

from toolcrib.apps.properties import phrase_faults, phrases

MANY = {"activationPhrases": {"de": ["erinnere mich"], "en": ["remind me"], "pt-BR": ["lembre-me"]}}


@pytest.mark.requirement("D13")
@pytest.mark.parametrize(
    "language, said",
    [
        ("de", "erinnere mich"),
        ("de-CH", "erinnere mich"),
        ("DE_ch", "erinnere mich"),
        ("pt-br", "lembre-me"),
        ("pt-PT", "remind me"),
        ("fr", "remind me"),
        ("", "remind me"),
    ],
)
def test_the_nearest_language_is_chosen(language: str, said: str) -> None:
    assert phrases(MANY, language) == (said,)


@pytest.mark.requirement("D13")
def test_without_english_it_is_the_first() -> None:
    assert phrases({"activationPhrases": {"de": ["ja"], "fr": ["oui"]}}, "es") == ("ja",)


@pytest.mark.requirement("D13")
def test_a_plain_list_is_for_every_language() -> None:
    assert phrases({"activationPhrases": ["a", "b"]}, "fr") == ("a", "b")


@pytest.mark.parametrize("extensions", [{}, {"activationPhrases": {}}, {"activationPhrases": None}])
def test_there_may_be_none(extensions: dict[str, Any]) -> None:
    assert phrases(extensions, "en") == ()


@pytest.mark.parametrize(
    "given, path",
    [
        (None, "p"),
        ([""], "p[0]"),
        (["x" * 201], "p[0]"),
        (["x"] * 101, "p"),
        ({"de": "x"}, "p.de"),
        ({"de": [3]}, "p.de[0]"),
        ({"deutsch!": ["x"]}, 'p["deutsch!"]'),
        ({"": ["x"]}, 'p[""]'),
    ],
)
def test_faults_are_named_by_path(given: Any, path: str) -> None:
    assert [fault.path for fault in phrase_faults(given, "p")] == [path]
