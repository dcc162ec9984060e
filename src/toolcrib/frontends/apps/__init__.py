"""The frontend for mini-apps: the WebSocket endpoint they connect to."""

from toolcrib.frontends.apps.sockets import AppSockets

__all__ = ["AppSockets"]
