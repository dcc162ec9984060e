"""Every spelling of tools we ship, by name."""

from toolcrib.formats.mcp import Mcp
from toolcrib.formats.rest import Rest
from toolcrib.interfaces import Format

FORMATS: dict[str, Format] = {each.name: each for each in (Rest(), Mcp())}

__all__ = ["FORMATS", "Mcp", "Rest"]
