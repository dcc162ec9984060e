"""The line editor: editing keys, multi-byte characters, escape sequences and the end of input."""

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
def test_keys_are_edited_into_lines(keys: bytes, lines: list[str], left: str) -> None:
    editor = LineEditor()
    assert editor.feed(keys) == lines
    assert editor.text == left
    assert not editor.ended


def test_character_split_between_reads_is_decoded() -> None:
    editor = LineEditor()
    first, second = "ü".encode()[:1], "ü".encode()[1:]
    assert editor.feed(first) == []
    assert editor.feed(second + b"\n") == ["ü"]


def test_end_of_input_completes_the_last_line() -> None:
    editor = LineEditor()
    editor.feed(b"last words")
    assert editor.feed(b"") == ["last words"]
    assert editor.ended


def test_control_d_ends_input_only_on_an_empty_line() -> None:
    editor = LineEditor()
    editor.feed(b"text\x04")
    assert not editor.ended
    editor.feed(b"\x15\x04")
    assert editor.ended


def test_long_line_is_truncated() -> None:
    editor = LineEditor()
    editor.feed(b"x" * 10_000)
    assert len(editor.text) == 4000
