"""SDK for mini-apps: an HTTP server that the gateway calls, and user sessions over WebSocket."""

from toolcrib.sdk.app.audio import Spoken, Transcription
from toolcrib.sdk.app.connection import SessionEnded
from toolcrib.sdk.app.server import AppServer
from toolcrib.sdk.app.session import AppContext, AppSession, StorageError

__all__ = ["AppContext", "AppServer", "AppSession", "SessionEnded", "Spoken", "StorageError", "Transcription"]
