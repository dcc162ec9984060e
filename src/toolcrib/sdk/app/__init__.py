"""SDK for mini-apps: an HTTP server that the gateway calls, and user sessions over WebSocket."""

from toolcrib.sdk.app.audio import Spoken
from toolcrib.sdk.app.connection import SessionEnded
from toolcrib.sdk.app.context import AppContext
from toolcrib.sdk.app.server import AppServer
from toolcrib.sdk.app.session import AppSession
from toolcrib.sdk.app.stored_texts import StorageError
from toolcrib.sdk.app.transcriptions import Transcription

__all__ = [
    "AppContext",
    "AppServer",
    "AppSession",
    "SessionEnded",
    "Spoken",
    "StorageError",
    "Transcription",
]
