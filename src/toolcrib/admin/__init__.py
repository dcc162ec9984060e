"""The operators' door: what runs, what happened, why a tool is or is not there, and who holds keys."""

from toolcrib.admin.apps import AppDesk
from toolcrib.admin.console import Console
from toolcrib.admin.servers import Servers
from toolcrib.admin.users import UserDesk

__all__ = ["AppDesk", "Console", "Servers", "UserDesk"]
