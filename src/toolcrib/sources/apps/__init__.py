"""Mini-apps: third-party HTTP services with tools that are called by POST."""

from toolcrib.sources.apps.source import AppSource

__all__ = ["AppSource"]
