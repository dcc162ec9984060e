"""JSONC parser (JSON with comments and trailing commas): bounded size and depth, line numbers in errors."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from toolcrib.config.errors import ConfigError, ConfigFault, FilePosition

LARGEST = 1 << 20
DEEPEST = 64

# An unterminated string or comment matches to the end of the text, so that matching takes linear time.
_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_BRACKET = re.compile(rf"{_STRING}|([\[{{])|([\]}}])", re.DOTALL)
_NOT_A_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Read:
    """The parsed value, and the keys that an object has more than once, where the last one wins."""

    value: Any
    repeated: tuple[str, ...]


def read_json(data: bytes, name: str) -> Read:
    """Parse one document. Raises ConfigError with the line of the error."""
    if len(data) > LARGEST:
        _refuse(name, f"is larger than {LARGEST // 1024} KiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(name, "is not UTF-8 text; save it as UTF-8", data.count(b"\n", 0, error.start))
    plain = _LAST_COMMA.sub(_blank, _COMMENT.sub(_blank, text))
    _measure(plain, name)
    return _parsed(plain, name)


def _blank(match: re.Match[str]) -> str:
    """Return a string unchanged, and blank out all else except newlines, so that line numbers stay valid."""
    return match[1] or _NOT_A_NEWLINE.sub(" ", match[0])


def _measure(text: str, name: str) -> None:
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += bool(match[1]) - bool(match[2])
        if depth > DEEPEST:
            _refuse(name, f"is nested more than {DEEPEST} levels deep", text.count("\n", 0, match.start()))


def _parsed(text: str, name: str) -> Read:
    repeated: dict[str, None] = {}

    def entries(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                repeated[key] = None
            found[key] = value
        return found

    try:
        value = json.loads(text, object_pairs_hook=entries, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        _refuse(name, f"is not valid JSON: {error.msg}", error.lineno - 1)
    except UnicodeEncodeError:
        _refuse(name, r"is not valid JSON: it holds half a character, such as \ud800 alone")
    except ValueError:
        _refuse(name, "is not valid JSON: it holds a number that is none, or that has no end")
    return Read(value, tuple(repeated))


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def _refuse(name: str, message: str, lines_before: int | None = None) -> NoReturn:
    place = None if lines_before is None else FilePosition(lines_before + 1, 1)
    raise ConfigError([ConfigFault(message=message, file=name, place=place)])
