"""The kinds of value a setting can have."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from toolcrib.config import values
from toolcrib.config.values import RATE, is_day, rate, spell_rate
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
    assert str(refused.value) == RATE


@given(st.integers(1, 10**9 - 1), st.sampled_from([1_000, 60_000, 3_600_000, 86_400_000]))
def test_rates_spelled_short_come_back(calls: int, window: int) -> None:
    assert rate(spell_rate(RateLimit(calls, window))) == RateLimit(calls, window)


def test_odd_windows_are_spelled_out() -> None:
    assert spell_rate(RateLimit(5, 7)) == "{maxCalls: 5, windowMs: 7}"


@pytest.mark.parametrize(
    "text, is_one", [("2027-01-31", True), ("20270131", False), ("soon", False), ("", False)]
)
def test_days_have_one_spelling(text: str, is_one: bool) -> None:
    assert is_day(text) is is_one


GOOD: list[tuple[Any, Any]] = [
    (values.Whole, 5),
    (values.Port, 0),
    (values.Amount, 0.5),
    (values.ContextName, "support-2.x"),
    (values.SafeName, "a" * 64),
    (values.Host, "[::1]"),
    (values.Host, "tools.example.com:8080"),
    (values.Module, "my_package.tools"),
    (values.StoreAddress, "sqlite://"),
    (values.StoreAddress, "sqlite:////var/lib/x.db"),
    (values.StoreAddress, "postgresql:///db?host=/run"),
    (values.Pattern, "com.example.app:*"),
    (values.Entry, "category:query"),
    (values.Entry, "tag:cards"),
    (values.WebAddress, "http://127.0.0.1:9000/mcp"),
    (values.WebAddress, "http://[::1]:9000/mcp"),
    (values.WebAddress, "https://tools.example.com./"),
    (values.WebAddress, "https://bücher.example/"),
    (values.WebAddress, f"https://{'a' * 63}.example/"),
    (values.Network, "10.0.0.0/8"),
    (values.Network, "::1/128"),
]
BAD: list[tuple[Any, Any]] = [
    (values.Whole, True),
    (values.Whole, "x"),
    (values.Port, 65536),
    (values.Port, -1),
    (values.Amount, "nan"),
    (values.Amount, -1),
    (values.Count, 0),
    (values.Text, ""),
    (values.ContextName, ""),
    (values.ContextName, "a/b"),
    (values.ContextName, "a" * 65),
    (values.SafeName, "Get"),
    (values.SafeName, "a" * 65),
    (values.SafeName, "a\n"),
    (values.Host, "http://h"),
    (values.Module, "my package"),
    (values.Module, "a..b"),
    (values.StoreAddress, "mysql://h/db"),
    (values.StoreAddress, "sqlite:relative.db"),
    (values.Pattern, "a b"),
    (values.Pattern, "a[1]"),
    (values.Pattern, "x:"),
    (values.Pattern, ":x"),
    (values.Pattern, "a" * 201),
    (values.Entry, "category:all"),
    (values.WebAddress, "ftp://h"),
    (values.WebAddress, "http://"),
    (values.WebAddress, "http://h:99999"),
    (values.WebAddress, "http://[::1"),
    (values.WebAddress, "http://a b"),
    (values.WebAddress, "http://a..b/"),
    (values.WebAddress, "http://.a/"),
    (values.WebAddress, "http://ü..b/"),
    (values.WebAddress, f"http://{'a' * 64}.example/"),
    (values.WebAddress, f"http://{'ü' * 60}.example/"),
    (values.WebAddress, "http://[::1]a/"),
    (values.Network, "10.0.0.0/99"),
]


@pytest.mark.parametrize("kind, value", GOOD)
def test_what_fits_is_kept(kind: Any, value: object) -> None:
    assert TypeAdapter[object](kind).validate_python(value) == value


@pytest.mark.parametrize("kind, value", BAD)
def test_what_does_not_fit_is_refused(kind: Any, value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter[object](kind).validate_python(value)


def test_an_address_becomes_a_range() -> None:
    assert TypeAdapter[object](values.Network).validate_python("10.1.2.3/8") == "10.0.0.0/8"
