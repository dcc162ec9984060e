"""App sessions of users: lifecycle, WebSocket protocol, display and speech events, notifications."""

from toolcrib.sessions.app_state import AppState
from toolcrib.sessions.app_timeouts import AppTimeouts
from toolcrib.sessions.session_use import SessionUse
from toolcrib.sessions.socket import AppSocket
from toolcrib.sessions.user_events import UserEvent
from toolcrib.sessions.user_sessions import UserSessions

__all__ = ["AppSocket", "AppState", "AppTimeouts", "SessionUse", "UserEvent", "UserSessions"]
