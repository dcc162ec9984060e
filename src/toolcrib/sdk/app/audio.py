"""Transcriptions that an app receives and speech that it plays."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from uuid import uuid4

import anyio

from toolcrib.apps.messages import TRANSCRIPTION
from toolcrib.apps.parse import speech_url
from toolcrib.model import JsonObject
from toolcrib.sdk.app.connection import HandlerQueue, OutgoingMessages, SessionEnded

# --- Transcriptions of the user's speech ---

_UNKNOWN_LANGUAGE = "auto"
"""Language tag of a gateway that does not know the language."""

Unsubscribe = Callable[[], None]
"""Unsubscribes a handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcription:
    """Transcribed speech. An interim transcription is repeated, longer, until it is final."""

    text: str
    is_final: bool
    language: str | None = None
    """Language tag, such as `en-US`."""
    data: JsonObject = field(default_factory=dict[str, Any], repr=False, hash=False)
    """The gateway's full payload."""


TranscriptionHandler = Callable[[Transcription], Any]


class TranscriptionEvents:
    """Registry of transcription handlers, sync or async; they are called one after the other."""

    def __init__(self, queue: HandlerQueue, changed: Callable[[], None]) -> None:
        self._queue, self._changed = queue, changed
        self._handlers: list[tuple[TranscriptionHandler, str | None]] = []

    def on_transcription(self, handler: TranscriptionHandler, language: str | None = None) -> Unsubscribe:
        """Subscribe a handler to transcriptions in one language, such as `de-DE` or `de`, or in any."""
        entry = (handler, language)
        self._handlers.append(entry)
        self._changed()

        def unsubscribe() -> None:
            if entry in self._handlers:
                self._handlers.remove(entry)
                self._changed()

        return unsubscribe

    def streams(self) -> list[str]:
        """Return the streams to subscribe to: the stream of all languages includes the others."""
        wanted = {language for _, language in self._handlers}
        if None in wanted:
            return [TRANSCRIPTION]
        return sorted(f"{TRANSCRIPTION}:{language}" for language in wanted)

    def take(self, message: JsonObject) -> None:
        """Dispatch a stream message to the handlers; malformed ones are ignored."""
        stream, payload = message.get("streamType"), message.get("data")
        if not isinstance(stream, str) or not isinstance(payload, dict):
            return
        data = cast("JsonObject", payload)
        kind, _, tag = stream.partition(":")
        text = data.get("text")
        if kind != TRANSCRIPTION or not isinstance(text, str):
            return
        reported = data.get("transcribeLanguage", tag)
        language = reported if isinstance(reported, str) and reported not in ("", _UNKNOWN_LANGUAGE) else None
        transcription = Transcription(
            text=text, is_final=data.get("isFinal") is True, language=language, data=data
        )
        for handler, wanted in self._handlers:
            if wanted is None or wanted == tag or _matches_language(language, wanted):
                self._queue.add(partial(handler, transcription))


def _matches_language(language: str | None, wanted: str) -> bool:
    """Whether a language tag equals the wanted one, or is a regional variant of it."""
    spoken, wished = (language or "").lower(), wanted.lower()
    return spoken == wished or spoken.startswith(f"{wished}-")


# --- Speech output of an app ---

SPEECH_TIMEOUT_SECONDS = 60.0
"""Timeout of speech output, in seconds."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """Outcome of a speech request."""

    success: bool
    error: str | None = None


class Audio:
    """Speaks through the user's device, or the phone it is connected to."""

    def __init__(
        self, outgoing: OutgoingMessages, gateway: str, *, seconds: float = SPEECH_TIMEOUT_SECONDS
    ) -> None:
        self._outgoing, self._gateway, self._seconds = outgoing, gateway, seconds
        self._waiting: dict[str, _PendingSpeech] = {}

    async def speak(self, text: str) -> Spoken:
        """Speak a text, and wait for the outcome; a failure is returned, not raised."""
        if not text:
            raise ValueError("the text is empty: there is nothing to speak")
        request = uuid4().hex
        wait = self._waiting[request] = _PendingSpeech(anyio.Event())
        try:
            with anyio.fail_after(self._seconds):
                await self._outgoing.play(request, speech_url(self._gateway, text))
                await wait.done.wait()
        except TimeoutError:
            return Spoken(success=False, error=f"not confirmed within {self._seconds:g} s")
        except SessionEnded as error:
            return Spoken(success=False, error=str(error))
        finally:
            del self._waiting[request]
        return wait.spoken

    def take(self, message: JsonObject) -> None:
        """Process the response to a request."""
        wait = self._waiting.get(str(message.get("requestId")))
        if wait is not None:
            error = message.get("error")
            success = message.get("success") is True
            wait.settle(Spoken(success, error if isinstance(error, str) else None))

    def end(self) -> None:
        """Fail all pending requests."""
        for wait in self._waiting.values():
            wait.settle(Spoken(success=False, error="the session has ended"))


@dataclass(slots=True)
class _PendingSpeech:
    done: anyio.Event
    spoken: Spoken = Spoken(success=False)

    def settle(self, spoken: Spoken) -> None:
        self.spoken = spoken
        self.done.set()
