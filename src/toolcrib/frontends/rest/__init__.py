"""The gateway as plain HTTP and JSON: list, call, ask what happened, keep keys."""

from toolcrib.frontends.rest.openapi import describe
from toolcrib.frontends.rest.routes import RestFrontend

__all__ = ["RestFrontend", "describe"]
