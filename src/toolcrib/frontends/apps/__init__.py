"""The face of mini-apps: where they connect back to show, to say and to hear."""

from toolcrib.frontends.apps.sockets import AppSockets

__all__ = ["AppSockets"]
