"""The web page: what runs, the tools, try one, connect a client, keep keys."""

from toolcrib.frontends.web.page import Page
from toolcrib.frontends.web.page_sessions import PageSessions

__all__ = ["Page", "PageSessions"]
