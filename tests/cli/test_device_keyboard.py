"""Keys become lines: edited, in any language, without the sequences of other keys."""

import pytest

from toolcrib.cli.glasses.simulate import LineEditor


@pytest.mark.parametrize(
    "keys, lines, left",
    [
        (b"hello\n", ["hello"], ""),
        (b"hello\r\nagain\r", ["hello", "again"], ""),
        (b"helloo\x7f\x08o", [], "hello"),
        (b"gone\x15kept", [], "kept"),
        (b"\x1b[A\x1b[3~up\x1bOPand\x1b[1;5Cdown", [], "upanddown"),
        (b"a\tb\x00\x0c", [], "a b"),
        ("grüße 日本\n".encode(), ["grüße 日本"], ""),
        (b"\n  \n", [], ""),
    ],
)
def test_keys_become_lines(keys: bytes, lines: list[str], left: str) -> None:
    typed = LineEditor()
    assert typed.feed(keys) == lines
    assert typed.text == left
    assert not typed.ended


def test_a_character_may_come_in_two_pieces() -> None:
    typed = LineEditor()
    first, second = "ü".encode()[:1], "ü".encode()[1:]
    assert typed.feed(first) == []
    assert typed.feed(second + b"\n") == ["ü"]


def test_the_end_of_the_input_ends_the_last_line() -> None:
    typed = LineEditor()
    typed.feed(b"last words")
    assert typed.feed(b"") == ["last words"]
    assert typed.ended


def test_control_d_ends_it_on_an_empty_line_alone() -> None:
    typed = LineEditor()
    typed.feed(b"text\x04")
    assert not typed.ended
    typed.feed(b"\x15\x04")
    assert typed.ended


def test_a_line_that_never_ends_is_cut() -> None:
    typed = LineEditor()
    typed.feed(b"x" * 10_000)
    assert len(typed.text) == 4000
