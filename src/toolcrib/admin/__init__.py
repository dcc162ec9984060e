"""The operators' door: what runs, what happened, why a tool is or is not there, and who holds keys."""

from toolcrib.admin.admin import Console
from toolcrib.admin.app_admin import AppDesk
from toolcrib.admin.server_admin import Servers
from toolcrib.admin.user_admin import UserDesk

__all__ = ["AppDesk", "Console", "Servers", "UserDesk"]
