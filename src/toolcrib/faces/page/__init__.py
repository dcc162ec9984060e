"""The web page: what runs, the tools, try one, connect a client, keep keys."""

from toolcrib.faces.page.page import Page
from toolcrib.faces.page.session import Sessions

__all__ = ["Page", "Sessions"]
