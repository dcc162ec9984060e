"""Every setting is known by path, type, default and meaning."""

import pytest

from toolcrib.config import settings
from toolcrib.config.errors import Where
from toolcrib.config.settings import Setting, setting_names


def test_settings_are_listed_with_all_the_docs_need() -> None:
    found = {setting.path: setting for setting in settings()}
    assert len(found) == len(settings())
    assert found["limits.per_user"] == Setting(
        "limits.per_user", "rate", "600/min", "rate limit per user; null for no limit"
    )
    assert found["server.port"][1:3] == ("whole number", "null")
    assert found["auth.mode"][1:3] == ("keys, trust_header", "keys")
    assert found["contexts"][1:3] == ("mapping of mapping", "{}")
    assert found["contexts.<name>.tools"][1:3] == ("list of text", "null")
    assert found["contexts.<name>.search"][1:3] == ("true or false", "false")
    assert found["overrides.<name>.deprecated"][1:3] == ("mapping", "null")
    assert found["mcp.enabled"][1:3] == ("true or false", "true")
    assert found["mcp.allow_stdio"][1:3] == ("true or false", "false")
    assert found["mcp.servers.<name>.command"][1:3] == ("list of text", "[]")
    assert found["mcp.servers.<name>.idle_stop_ms"][1:3] == ("whole number", "null")
    assert found["reload.watch"][1:3] == ("true or false", "false")
    assert found["mcp.servers.<name>.headers"][1:3] == ("mapping of text", "{}")
    assert found["mcp.servers.<name>.restart.backoff_ms"][1:3] == ("whole number", "1000")
    assert found["mcp.servers.<name>.tools"][1:3] == ("list of mapping", "[]")
    assert found["mcp.servers.<name>.tools[].name"][1:3] == ("text", "required")
    assert found["energy.start"][1:3] == ("number", "100.0")
    assert all(setting.meaning for setting in settings())


@pytest.mark.parametrize(
    "where, names",
    [
        (
            ("auth",),
            ("mode", "admin_key", "admin_key_old", "default", "purge_keys_after_days", "anonymous"),
        ),
        (("auth", "anonymous"), ("context",)),
        (("mcp", "servers", "x", "restart"), ("enabled", "max_restarts", "backoff_ms")),
        (("openapi", "x"), ("document", "base_url")),
        (("overrides", "x", "deprecated"), ("since", "replacement", "removal_date", "announced")),
        (("mcp", "servers"), ()),
        (("legacy",), ()),
        (("nowhere", "at", "all"), ()),
    ],
)
def test_the_names_at_a_place_are_known(where: Where, names: tuple[str, ...]) -> None:
    assert setting_names(where) == names


def test_the_names_in_a_list_of_mappings_are_known() -> None:
    assert setting_names(("mcp", "servers", "x", "tools", 3))[:2] == ("name", "expose_as")
