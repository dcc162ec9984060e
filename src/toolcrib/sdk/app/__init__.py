"""A mini-app in Python: a server the gateway calls, and the sessions of its users."""

from toolcrib.sdk.app.audio import Spoken
from toolcrib.sdk.app.context import AppContext
from toolcrib.sdk.app.events import Transcription
from toolcrib.sdk.app.link import SessionEnded
from toolcrib.sdk.app.server import AppServer
from toolcrib.sdk.app.session import AppSession
from toolcrib.sdk.app.storage import StorageError

__all__ = [
    "AppContext",
    "AppServer",
    "AppSession",
    "SessionEnded",
    "Spoken",
    "StorageError",
    "Transcription",
]
