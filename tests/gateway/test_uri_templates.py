"""A URI fits a template exactly where some values make it, and no template can make finding out slow."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcrib.gateway.resource_index import (
    MAX_MATCHED_CHARACTERS,
    MAX_TEMPLATE_VARIABLES,
    UriTemplate,
    read_template,
)


def template(text: str) -> UriTemplate:
    found = read_template(text)
    assert found is not None
    return found


def pattern(text: str) -> re.Pattern[str]:
    """The same, as slow as a regular expression may be."""
    parts = re.split(r"\{([^{}]*)\}", text)
    spelled = [re.escape(part) for part in parts]
    spelled[1::2] = [".*" if blank[:1] in tuple("+#/?&") else "[^/]*" for blank in parts[1::2]]
    return re.compile("".join(spelled), re.DOTALL)


PIECES = st.sampled_from(["a", "b", "/", "ab", "{x}", "{+y}", "{/z}", "{?q,r}", "{.s}", "{}"])


@given(text=st.lists(PIECES, max_size=8).map("".join), uri=st.text("ab/", max_size=12))
@example(text="{+a}-{b}", uri="x-y/z-w")
@example(text="{x}{+y}a{x}", uri="aba/aa")
def test_template_matching_agrees_with_a_regex(text: str, uri: str) -> None:
    assert template(text).matches(uri) == bool(pattern(text).fullmatch(uri))


@given(
    st.lists(st.tuples(st.text("ab/.", max_size=4), st.text("abc", max_size=4)), max_size=6),
    st.text("ab/", max_size=4),
)
def test_expanded_template_matches(parts: list[tuple[str, str]], end: str) -> None:
    text = "".join(f"{fixed}{{x}}" for fixed, _ in parts) + end
    assert template(text).matches("".join(fixed + value for fixed, value in parts) + end)


@pytest.mark.parametrize(
    "text, uri, fits",
    [
        ("test://template/{id}/data", "test://template/123/data", True),
        ("test://template/{id}/data", "test://template/1/2/data", False),
        ("test://template/{id}/data", "test://template/123/data/more", False),
        ("file:///{+path}", "file:///a/b/c.txt", True),
        ("file:///{+path}", "http:///a", False),
        ("db://{table}{?where,limit}", "db://users?where=a/b&limit=3", True),
        ("{scheme}://x", "a://x", True),
        ("plain://uri", "plain://uri", True),
        ("plain://uri", "plain://uris", False),
        ("", "", True),
    ],
)
def test_frequent_templates(text: str, uri: str, *, fits: bool) -> None:
    assert template(text).matches(uri) is fits


@pytest.mark.parametrize(
    "text",
    ["a{", "a}b", "{a{b}}", "{a}}", "{x}" * (MAX_TEMPLATE_VARIABLES + 1), "a" * (MAX_MATCHED_CHARACTERS + 1)],
)
def test_invalid_template_is_rejected(text: str) -> None:
    assert read_template(text) is None


def test_too_long_uri_matches_no_template() -> None:
    assert template("{+x}").matches("a" * MAX_MATCHED_CHARACTERS)
    assert not template("{+x}").matches("a" * (MAX_MATCHED_CHARACTERS + 1))


def test_template_with_more_literal_text_is_preferred() -> None:
    assert (
        template("a://{x}/long").literal_length
        > template("a://{x}{+y}").literal_length
        > template("{+x}").literal_length
    )


@pytest.mark.requirement("I5")
def test_template_matching_is_never_slow() -> None:
    """An expression would go through this for longer than there is time."""
    uri, known = "a" * MAX_MATCHED_CHARACTERS, dict[str, int]()
    for number in range(500):
        text = "".join(
            f"{{+x}}{'a' * ((number + blank) % 50 + 1)}" for blank in range(MAX_TEMPLATE_VARIABLES)
        )
        assert not template(f"{text}b").matches(uri, known)
