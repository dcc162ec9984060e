"""Who is here: users' apps, whether they run, what they show and say, and what they are told."""

from toolcrib.sessions.app_state import AppState
from toolcrib.sessions.app_timeouts import Settings
from toolcrib.sessions.session_use import SessionUse
from toolcrib.sessions.socket import Socket
from toolcrib.sessions.user_events import Event
from toolcrib.sessions.user_sessions import Sessions

__all__ = ["AppState", "Event", "SessionUse", "Sessions", "Settings", "Socket"]
