"""The admin API behind all frontends: status, calls, explanations, keys, servers, apps and users."""

from toolcrib.admin.admin import Admin
from toolcrib.admin.app_admin import AppAdmin
from toolcrib.admin.server_admin import ServerAdmin
from toolcrib.admin.user_admin import UserAdmin

__all__ = ["Admin", "AppAdmin", "ServerAdmin", "UserAdmin"]
