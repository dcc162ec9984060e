"""The operators' door: what runs, what happened, why a tool is or is not there, and who holds keys."""

from toolcrib.console.apps import AppDesk
from toolcrib.console.console import Console
from toolcrib.console.servers import Servers
from toolcrib.console.users import UserDesk

__all__ = ["AppDesk", "Console", "Servers", "UserDesk"]
