"""Faults as operators read them."""

import pytest

from toolcrib.config.errors import ConfigError, ConfigFault, FilePosition, Where, format_path


@pytest.mark.parametrize(
    "where, spelled",
    [
        ((), ""),
        (("server",), "server"),
        (("contexts", "support", "tools", 0), "contexts.support.tools[0]"),
        (("overrides", "local:*", "cache_ttl"), 'overrides["local:*"].cache_ttl'),
        (("contexts", "a.b"), 'contexts["a.b"]'),
        (("contexts", ""), 'contexts[""]'),
        (("contexts", "größe"), 'contexts["größe"]'),
        (("contexts", "a\nb"), r'contexts["a\nb"]'),
        (("contexts", "\ud800"), r'contexts["\ud800"]'),
        (("x" * 200,), '["' + "x" * 80 + '…"]'),
    ],
)
def test_a_path_reads_like_the_file(where: Where, spelled: str) -> None:
    assert format_path(where) == spelled


def test_a_fault_is_one_line() -> None:
    fault = ConfigFault(
        message="is wrong",
        where=("contexts", "support", "tools", 0),
        file="toolcrib.yaml",
        position=FilePosition(12, 3),
    )
    assert str(fault) == "toolcrib.yaml:12 contexts.support.tools[0]: is wrong"
    assert str(ConfigFault(message="is wrong", file="toolcrib.yaml")) == "toolcrib.yaml: is wrong"
    assert str(ConfigFault(message="all is wrong")) == "all is wrong"


def test_an_error_lists_every_fault_but_stays_readable() -> None:
    faults = [ConfigFault(message="is wrong", where=(f"s{number}",)) for number in range(150)]
    error = ConfigError(faults)
    lines = str(error).splitlines()
    assert len(error.faults) == 150
    assert lines[0] == "s0: is wrong"
    assert lines[-1] == "… and 50 more"
    assert len(lines) == 101
