"""Who is here: users' apps, whether they run, what they show and say, and what they are told."""

from toolcrib.sessions.events import Event
from toolcrib.sessions.life import AppState
from toolcrib.sessions.sessions import Sessions
from toolcrib.sessions.settings import Settings
from toolcrib.sessions.socket import Socket
from toolcrib.sessions.use import SessionUse

__all__ = ["AppState", "Event", "SessionUse", "Sessions", "Settings", "Socket"]
