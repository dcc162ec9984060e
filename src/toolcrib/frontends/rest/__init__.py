"""The REST frontend: tools, calls, administration and API keys over HTTP and JSON."""

from toolcrib.frontends.rest.openapi import describe
from toolcrib.frontends.rest.routes import RestFrontend

__all__ = ["RestFrontend", "describe"]
