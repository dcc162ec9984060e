"""What a user says, for the handlers of an app that asked to hear it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from toolcrib.apps.messages import TRANSCRIPTION
from toolcrib.model import JsonObject
from toolcrib.sdk.app.handler_queue import HandlerQueue

_UNKNOWN = "auto"
"""What a gateway says that was not told the language."""

Off = Callable[[], None]
"""Called to hear no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcription:
    """Something a user has said. What is not final is said again, longer, until it is."""

    text: str
    is_final: bool
    language: str | None = None
    """The tag of the language it was heard in, such as `en-US`."""
    data: JsonObject = field(default_factory=dict[str, Any], repr=False, hash=False)
    """All that the gateway says of it."""


Hearer = Callable[[Transcription], Any]


class TranscriptionEvents:
    """Who wants to hear what. Handlers are called one after the other, sync or async."""

    def __init__(self, errands: HandlerQueue, changed: Callable[[], None]) -> None:
        self._errands, self._changed = errands, changed
        self._hearers: list[tuple[Hearer, str | None]] = []

    def on_transcription(self, handler: Hearer, language: str | None = None) -> Off:
        """Have a handler told what the user says: in one language, such as `de-DE` or `de`, or in any."""
        entry = (handler, language)
        self._hearers.append(entry)
        self._changed()

        def off() -> None:
            if entry in self._hearers:
                self._hearers.remove(entry)
                self._changed()

        return off

    def streams(self) -> list[str]:
        """Name the streams to subscribe to: the one of all languages holds the others."""
        wanted = {language for _, language in self._hearers}
        if None in wanted:
            return [TRANSCRIPTION]
        return sorted(f"{TRANSCRIPTION}:{language}" for language in wanted)

    def take(self, message: JsonObject) -> None:
        """Take in a piece of a stream; of what is none, nothing is said."""
        stream, given = message.get("streamType"), message.get("data")
        if not isinstance(stream, str) or not isinstance(given, dict):
            return
        data = cast("JsonObject", given)
        kind, _, tag = stream.partition(":")
        text = data.get("text")
        if kind != TRANSCRIPTION or not isinstance(text, str):
            return
        told = data.get("transcribeLanguage", tag)
        language = told if isinstance(told, str) and told not in ("", _UNKNOWN) else None
        heard = Transcription(text=text, is_final=data.get("isFinal") is True, language=language, data=data)
        for handler, wanted in self._hearers:
            if wanted is None or wanted == tag or _speaks(language, wanted):
                self._errands.add(partial(handler, heard))


def _speaks(language: str | None, wanted: str) -> bool:
    """Whether a tag is the wanted one, or of that language where only a language is wanted."""
    spoken, wished = (language or "").lower(), wanted.lower()
    return spoken == wished or spoken.startswith(f"{wished}-")
