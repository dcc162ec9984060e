"""Mini-apps: programs of others behind a URL, whose tools are called by HTTP."""

from toolcrib.sources.apps.source import AppSource

__all__ = ["AppSource"]
