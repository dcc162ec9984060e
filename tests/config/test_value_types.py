"""The kinds of value a setting can have."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from toolcrib.config import value_types
from toolcrib.config.value_types import RATE_MESSAGE, format_rate, is_day, rate
from toolcrib.model import RateLimit


@pytest.mark.parametrize(
    "written, limit",
    [
        ("600/min", RateLimit(600, 60_000)),
        ("10/s", RateLimit(10, 1_000)),
        ("5000/hour", RateLimit(5000, 3_600_000)),
        (" 1 / day ", RateLimit(1, 86_400_000)),
        ("7/minute", RateLimit(7, 60_000)),
        ({"maxCalls": 60, "windowMs": 5_000}, RateLimit(60, 5_000)),
        ({"maxCalls": "60", "windowMs": "5000"}, RateLimit(60, 5_000)),
        (RateLimit(1, 1), RateLimit(1, 1)),
    ],
)
def test_rates_are_read(written: object, limit: RateLimit) -> None:
    assert rate(written) == limit


@pytest.mark.parametrize(
    "written",
    [
        "",
        "fast",
        "10",
        "0/min",
        "-1/min",
        "1.5/min",
        "10/fortnight",
        "9999999999/s",
        10,
        None,
        ["10/s"],
        {},
        {"maxCalls": 1},
        {"maxCalls": 1, "windowMs": 0},
        {"maxCalls": True, "windowMs": 1},
        {"maxCalls": "x", "windowMs": 1},
        {"maxCalls": 1, "windowMs": 1, "burst": 2},
    ],
)
def test_other_rates_are_refused_with_examples(written: object) -> None:
    with pytest.raises(ValueError, match="must be a rate, such as 600/min") as refused:
        rate(written)
    assert str(refused.value) == RATE_MESSAGE


@given(st.integers(1, 10**9 - 1), st.sampled_from([1_000, 60_000, 3_600_000, 86_400_000]))
def test_short_rates_round_trip(calls: int, window: int) -> None:
    assert rate(format_rate(RateLimit(calls, window))) == RateLimit(calls, window)


def test_unusual_rate_windows_are_written_in_full() -> None:
    assert format_rate(RateLimit(5, 7)) == "{maxCalls: 5, windowMs: 7}"


@pytest.mark.parametrize(
    "text, is_one", [("2027-01-31", True), ("20270131", False), ("soon", False), ("", False)]
)
def test_days_have_one_spelling(text: str, is_one: bool) -> None:
    assert is_day(text) is is_one


GOOD: list[tuple[Any, Any]] = [
    (value_types.Whole, 5),
    (value_types.Port, 0),
    (value_types.Amount, 0.5),
    (value_types.ContextName, "support-2.x"),
    (value_types.SafeName, "a" * 64),
    (value_types.Host, "[::1]"),
    (value_types.Host, "tools.example.com:8080"),
    (value_types.Module, "my_package.tools"),
    (value_types.StoreAddress, "sqlite://"),
    (value_types.StoreAddress, "sqlite:////var/lib/x.db"),
    (value_types.StoreAddress, "postgresql:///db?host=/run"),
    (value_types.Pattern, "com.example.app:*"),
    (value_types.Entry, "category:query"),
    (value_types.Entry, "tag:cards"),
    (value_types.WebAddress, "http://127.0.0.1:9000/mcp"),
    (value_types.WebAddress, "http://[::1]:9000/mcp"),
    (value_types.WebAddress, "https://tools.example.com./"),
    (value_types.WebAddress, "https://bücher.example/"),
    (value_types.WebAddress, f"https://{'a' * 63}.example/"),
    (value_types.Network, "10.0.0.0/8"),
    (value_types.Network, "::1/128"),
]
BAD: list[tuple[Any, Any]] = [
    (value_types.Whole, True),
    (value_types.Whole, "x"),
    (value_types.Port, 65536),
    (value_types.Port, -1),
    (value_types.Amount, "nan"),
    (value_types.Amount, -1),
    (value_types.Count, 0),
    (value_types.Text, ""),
    (value_types.ContextName, ""),
    (value_types.ContextName, "a/b"),
    (value_types.ContextName, "a" * 65),
    (value_types.SafeName, "Get"),
    (value_types.SafeName, "a" * 65),
    (value_types.SafeName, "a\n"),
    (value_types.Host, "http://h"),
    (value_types.Module, "my package"),
    (value_types.Module, "a..b"),
    (value_types.StoreAddress, "mysql://h/db"),
    (value_types.StoreAddress, "sqlite:relative.db"),
    (value_types.Pattern, "a b"),
    (value_types.Pattern, "a[1]"),
    (value_types.Pattern, "x:"),
    (value_types.Pattern, ":x"),
    (value_types.Pattern, "a" * 201),
    (value_types.Entry, "category:all"),
    (value_types.WebAddress, "ftp://h"),
    (value_types.WebAddress, "http://"),
    (value_types.WebAddress, "http://h:99999"),
    (value_types.WebAddress, "http://[::1"),
    (value_types.WebAddress, "http://a b"),
    (value_types.WebAddress, "http://a..b/"),
    (value_types.WebAddress, "http://.a/"),
    (value_types.WebAddress, "http://ü..b/"),
    (value_types.WebAddress, f"http://{'a' * 64}.example/"),
    (value_types.WebAddress, f"http://{'ü' * 60}.example/"),
    (value_types.WebAddress, "http://[::1]a/"),
    (value_types.Network, "10.0.0.0/99"),
]


@pytest.mark.parametrize("kind, value", GOOD)
def test_valid_values_are_kept(kind: Any, value: object) -> None:
    assert TypeAdapter[object](kind).validate_python(value) == value


@pytest.mark.parametrize("kind, value", BAD)
def test_invalid_values_are_refused(kind: Any, value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter[object](kind).validate_python(value)


def test_an_address_becomes_a_range() -> None:
    assert TypeAdapter[object](value_types.Network).validate_python("10.1.2.3/8") == "10.0.0.0/8"
