"""The gateway as plain HTTP and JSON: list, call, ask what happened, keep keys."""

from toolcrib.faces.rest.openapi import describe
from toolcrib.faces.rest.routes import Rest

__all__ = ["Rest", "describe"]
