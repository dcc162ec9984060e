"""The face of mini-apps: where they connect back to show, to say and to hear."""

from toolcrib.faces.apps.sockets import AppSockets

__all__ = ["AppSockets"]
