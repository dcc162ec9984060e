"""Matches transcriptions to the stream subscriptions of an app."""

from collections.abc import Iterable

from toolcrib.apps.messages import TRANSCRIPTION

_ALL = ("all", "*")
_ANY = "auto"


def matching(streams: Iterable[str], language: str | None) -> str | None:
    """Return the subscription that best matches a transcription's language; None if none does.

    `transcription` matches any language; `transcription:en-US` matches exactly that tag first, then
    other variants of English: apps subscribe to their author's variant, and users speak their own.
    """
    fits = [(_fit(stream, language), stream) for stream in streams]
    best = max(fits, key=lambda each: each[0], default=(0, ""))
    return best[1] if best[0] else None


def _fit(stream: str, language: str | None) -> int:
    kind, _, wanted = stream.partition("?")[0].partition(":")
    if kind in _ALL:
        return 1
    if kind != TRANSCRIPTION:
        return 0
    if not wanted or wanted == _ANY or not language:
        return 2
    wanted, language = wanted.lower(), language.lower()
    if wanted == language:
        return 4
    return 3 if wanted.partition("-")[0] == language.partition("-")[0] else 0
