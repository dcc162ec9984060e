"""The operators' door: what runs, what happened, why a tool is or is not there, and who holds keys."""

from toolcrib.admin.admin import Admin
from toolcrib.admin.app_admin import AppAdmin
from toolcrib.admin.server_admin import ServerAdmin
from toolcrib.admin.user_admin import UserAdmin

__all__ = ["Admin", "AppAdmin", "ServerAdmin", "UserAdmin"]
