"""The web page frontend: status, tools, test calls, client setup and API keys."""

from toolcrib.frontends.web.page import Page, PageSessions

__all__ = ["Page", "PageSessions"]
