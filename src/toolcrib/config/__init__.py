"""Configuration: builds one validated document from the config file, the environment and the overlay."""

from toolcrib.config.errors import ConfigError, ConfigFault
from toolcrib.config.load import (
    Document,
    default_document,
    export,
    find,
    home,
    load,
    merge,
    parse,
    reread,
    with_bind_address,
)
from toolcrib.config.secrets import check_admin_key
from toolcrib.config.settings import Setting, settings

__all__ = [
    "ConfigError",
    "ConfigFault",
    "Document",
    "Setting",
    "check_admin_key",
    "default_document",
    "export",
    "find",
    "home",
    "load",
    "merge",
    "parse",
    "reread",
    "settings",
    "with_bind_address",
]
