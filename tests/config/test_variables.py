"""What other hosts write as `${…}`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.config.errors import Where
from toolcrib.config.imports import PlaceholderTranslator
from toolcrib.config.secrets import expand

INPUTS: list[Any] = [
    {"id": "api-key", "type": "promptString", "description": "The key of the API", "password": True},
    {"id": "region", "type": "pickString", "options": ["eu", "us"], "default": "eu"},
    {"id": "odd", "default": "{x}"},
    {"id": 5},
    "nonsense",
]


def translated(*texts: str, inputs: Any = None) -> tuple[list[str], list[str]]:
    said: list[str] = []

    def say(where: Where, message: str) -> None:
        said.append(message)

    variables = PlaceholderTranslator(INPUTS if inputs is None else inputs, say)
    return [variables.translate(("x",), text) for text in texts], said


@pytest.mark.requirement("B9")
@pytest.mark.parametrize(
    "text, ours, said",
    [
        ("plain $HOME", "plain $HOME", ""),
        ("${env:HOME}/x", "${HOME}/x", ""),
        ("${env:home_of}", "${home_of}", ""),
        ("${env:A-B}", "$${env:A-B}", "contains an unknown ${…}, which is kept as literal text"),
        (
            "${input:api-key}",
            "${API_KEY}",
            "asks for 'api-key'; set the variable API_KEY instead: The key of the API",
        ),
        ("${input:region}", "${REGION:-eu}", "asks for 'region'; set the variable REGION instead"),
        ("${input:odd}", "${ODD}", "asks for 'odd'; set the variable ODD instead"),
        ("${input:2nd}", "${INPUT_2ND}", "asks for '2nd'; set the variable INPUT_2ND instead"),
        ("${input:天}", "${INPUT}", "asks for '天'; set the variable INPUT instead"),
        ("${input:}", "$${input:}", "contains an unknown ${…}, which is kept as literal text"),
        ("${userHome}/x", "${HOME}/x", "refers to the user's home folder, which becomes ${HOME}"),
        (
            "${workspaceFolder}/x",
            "$${workspaceFolder}/x",
            "contains ${workspaceFolder}, which only an editor can resolve; write its value",
        ),
        (
            "${command:pick}",
            "$${command:pick}",
            "contains ${command:pick}, which only an editor can resolve; write its value",
        ),
        (
            "${TOKEN:-x}",
            "${TOKEN:-x}",
            "takes the variable TOKEN from the environment; write $${TOKEN} for the literal text",
        ),
        ("${", "$${", ""),
        ("${a ${env:B}", "$${a ${B}", ""),
    ],
)
def test_each_variable_syntax_is_converted(text: str, ours: str, said: str) -> None:
    assert translated(text) == ([ours], [said] if said else [])


def test_each_variable_is_reported_once_under_one_name() -> None:
    texts, said = translated(
        "${input:a b}", "${input:a-b}", "${input:a_b_2}", "${input:a b}", "${HOME}${HOME}"
    )
    assert texts == ["${A_B}", "${A_B_2}", "${A_B_2_2}", "${A_B}", "${HOME}${HOME}"]
    assert len(said) == 4


@given(st.text("${}:-AbenvinputHOME ", max_size=40))
def test_converted_variables_are_valid_config(text: str) -> None:
    (ours,), _said = translated(text, inputs={})
    found = expand({"x": ours}, {})
    assert all("refers to the variable" in message for _where, message in found.findings)
    if "${" not in text:
        assert ours == text
