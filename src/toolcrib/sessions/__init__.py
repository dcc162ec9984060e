"""Who is here: users' apps, whether they run, what they show and say, and what they are told."""

from toolcrib.sessions.app_state import AppState
from toolcrib.sessions.app_timeouts import AppTimeouts
from toolcrib.sessions.session_use import SessionUse
from toolcrib.sessions.socket import AppSocket
from toolcrib.sessions.user_events import UserEvent
from toolcrib.sessions.user_sessions import UserSessions

__all__ = ["AppSocket", "AppState", "AppTimeouts", "SessionUse", "UserEvent", "UserSessions"]
