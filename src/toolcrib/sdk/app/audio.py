"""Speech output of an app."""

from dataclasses import dataclass
from uuid import uuid4

import anyio

from toolcrib.apps.parse import speech_url
from toolcrib.model import JsonObject
from toolcrib.sdk.app.connection import SessionEnded
from toolcrib.sdk.app.outgoing_messages import OutgoingMessages

SPEECH_SECONDS = 60.0
"""Timeout of speech output, in seconds."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """Outcome of a speech request."""

    success: bool
    error: str | None = None


class Audio:
    """Speaks through the user's device, or the phone it is connected to."""

    def __init__(self, wire: OutgoingMessages, gateway: str, *, seconds: float = SPEECH_SECONDS) -> None:
        self._wire, self._gateway, self._seconds = wire, gateway, seconds
        self._waiting: dict[str, _Wait] = {}

    async def speak(self, text: str) -> Spoken:
        """Speak a text, and wait for the outcome; a failure is returned, not raised."""
        if not text:
            raise ValueError("there is nothing to say: give a text")
        request = uuid4().hex
        wait = self._waiting[request] = _Wait(anyio.Event())
        try:
            with anyio.fail_after(self._seconds):
                await self._wire.play(request, speech_url(self._gateway, text))
                await wait.done.wait()
        except TimeoutError:
            return Spoken(success=False, error=f"nobody said within {self._seconds:g} s that it was spoken")
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
            wait.tell(Spoken(success, error if isinstance(error, str) else None))

    def end(self) -> None:
        """Fail all pending requests."""
        for wait in self._waiting.values():
            wait.tell(Spoken(success=False, error="the session has ended"))


@dataclass(slots=True)
class _Wait:
    done: anyio.Event
    spoken: Spoken = Spoken(success=False)

    def tell(self, spoken: Spoken) -> None:
        self.spoken = spoken
        self.done.set()
