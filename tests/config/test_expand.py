"""References to the environment."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.config.secrets import escape, expand

ENV = {"NAME": "ada", "EMPTY": "", "PORT": "8080", "MONEY": "${NAME}"}


@pytest.mark.parametrize(
    "text, filled",
    [
        ("plain", "plain"),
        ("${NAME}", "ada"),
        ("Bearer ${NAME}!", "Bearer ada!"),
        ("${NAME}${PORT}", "ada8080"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${NAME:-x}", "ada"),
        ("${GONE:-}", ""),
        ("${GONE:-a b:-c}", "a b:-c"),
        ("$${NAME}", "${NAME}"),
        ("$$${NAME}", "$${NAME}"),
        ("$NAME $$ {NAME}", "$NAME $$ {NAME}"),
        ("${MONEY}", "${NAME}"),
    ],
)
@pytest.mark.requirement("I2")
def test_references_are_filled_in_once(text: str, filled: str) -> None:
    found = expand({"a": text}, ENV)
    assert found.values == {"a": filled}
    assert found.findings == ()


@pytest.mark.requirement("I2")
def test_a_missing_variable_is_named_with_its_place() -> None:
    found = expand({"a": ["x", "${GONE} and ${AWAY}"], "b": {"c": "${NAME}"}}, ENV)
    assert found.findings == (
        (("a", 1), "refers to the variable GONE, which is not set"),
        (("a", 1), "refers to the variable AWAY, which is not set"),
    )


@pytest.mark.parametrize(
    "text", ["${", "${}", "${1}", "${NAME", "${NAME:=x}", "${A:-${B}}", "${a-b}", "${ NAME }"]
)
def test_a_reference_that_cannot_be_read_is_a_finding(text: str) -> None:
    (where, message), *_ = expand({"a": text}, ENV).findings
    assert where == ("a",)
    assert message.startswith("has an invalid reference; write ${NAME}")


def test_keys_and_other_values_stay_as_they_are() -> None:
    document = {"${NAME}": [1, True, None, 2.5]}
    assert expand(document, ENV).values == document


def test_expanded_values_are_recorded_with_path() -> None:
    found = expand({"a": "x${NAME}y", "b": ["${GONE:-default}", "${PORT}"], "c": "${EMPTY}"}, ENV)
    assert found.taken == ((("a",), "ada"), (("b", 1), "8080"))


DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    st.text("${}:-A", max_size=12) | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("${}A", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("ab"), DOCUMENTS))
def test_escaped_text_round_trips(document: dict[str, Any]) -> None:
    found = expand(escape(document), ENV)
    assert found.values == document
    assert found.findings == ()
    assert found.taken == ()
