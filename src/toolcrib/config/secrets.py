"""Which values must never be shown: known settings, passwords in addresses, what the environment gave."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from toolcrib.config.expand import REFERENCE
from toolcrib.config.faults import Where
from toolcrib.config.tree import rewrite, texts

MASK = "***"

_OPEN = frozenset({"server", "log", "metrics", "limits"})
"""Sections that are printed on purpose and hold no secret, even where the environment fills them in."""

_PASSWORD = re.compile(r"(?P<before>://[^:/@\s]*:)(?P<password>\S+)(?=@)")
"""Up to the last `@`: covering too much of an address is the better mistake."""
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|ApiKey)?\s*", re.IGNORECASE)


def is_secret(where: Where) -> bool:
    """Whether the setting at this place is a secret by its nature."""
    if where[:2] == ("mcp", "servers"):
        return len(where) > 4 and where[3] in ("headers", "env")
    return where == ("auth", "admin_key")


def gather(values: Mapping[str, Any], taken: Iterable[tuple[Where, str]] = ()) -> frozenset[str]:
    """Collect every text of a filled-in document that a log line must not show."""
    found = {text for where, text in taken if where[0] not in _OPEN}
    for where, text in texts(values):
        if is_secret(where):
            found.add(text)
        found.update(_passwords(text))
    return frozenset(found - {""})


def _passwords(text: str) -> Iterator[str]:
    for match in _PASSWORD.finditer(text):
        first = match["password"].partition("@")[0]
        yield from (match["password"], first, unquote(first))


def mask(raw: Any) -> Any:
    """Copy a document that has its references unfilled, with secrets covered; a reference tells nothing."""
    return rewrite(raw, _masked)


def _masked(where: Where, text: str) -> str:
    if not text:
        return text
    if is_secret(where):
        return _references_alone(text)
    return _PASSWORD.sub(lambda match: match["before"] + _references_alone(match["password"]), text)


def _references_alone(text: str) -> str:
    names = [match for match in REFERENCE.finditer(text) if match["name"]]
    if not names or not _SCHEME.fullmatch(REFERENCE.sub("", text)):
        return MASK
    return REFERENCE.sub(
        lambda match: f"${{{match['name']}:-{MASK}}}" if match["default"] else match[0], text
    )
