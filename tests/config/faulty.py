"""Shorthand for tests that look at faults."""

from collections.abc import Mapping

import pytest

from toolcrib.config import ConfigError, parse


def faults(text: str, env: Mapping[str, str] | None = None) -> list[str]:
    """Return the faults of a config as an operator reads them."""
    with pytest.raises(ConfigError) as refused:
        parse(text, "toolcrib.yaml", env or {})
    assert str(refused.value).splitlines() == [str(fault) for fault in refused.value.faults]
    return str(refused.value).splitlines()
