"""App sessions of users: lifecycle, WebSocket protocol, display and speech events, notifications."""

from toolcrib.sessions.app_state import AppSocket, AppState, AppTimeouts
from toolcrib.sessions.user_events import UserEvent
from toolcrib.sessions.user_sessions import SessionUse, UserSessions

__all__ = ["AppSocket", "AppState", "AppTimeouts", "SessionUse", "UserEvent", "UserSessions"]
