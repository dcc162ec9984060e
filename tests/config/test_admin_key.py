"""Admin keys that are too easily guessed are refused, wherever they come from."""

from pathlib import Path
from random import Random
from secrets import token_hex, token_urlsafe

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.config.faulty import faults
from toolcrib.config import ConfigError, default_document, parse
from toolcrib.config.secrets import MIN_ADMIN_KEY_CHARACTERS, MIN_LOOPBACK_KEY_CHARACTERS, too_short, weakness
from toolcrib.identity.local_callers import FILE
from toolcrib.runtime import build

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I1")]

WEAK = [
    "k" * 32,
    "ab" * 20,
    "1234" * 10,
    " " * 40,
    "a key with blanks that is long enough",
    "tab\tin-a-key-that-is-long-enough-else",
    "aabbaabbaabbbbaaaabbabababbaabbaab",
    "changeme",
    "changeme-changeme-changeme-changeme",
    "ChangeMe123456",
    "admin",
    "secret",
    "password-password-password-password1",
    "zq7",
    "hunter2hunter2",
    "fifteen-letters",
    "hunter2!" * 4,
    "correct1" * 2,
    "Summer2026!" * 2,
    "Summer2026!Summer2026",
    "qwertzuiop" * 4,
    "AbcdeAbcdeAbcdeAbcde",
    "aBcDeFgH1!AbCdEfGh1!",
    "0123456789abcdef" * 2,
    "fedcba9876543210",
    "abcdefghijklmnopqrstuvwxyz012345",
    "zyxwvutsrqponmlkjihgfedcba987654",
    "qwertyuiopasdfghjklzxcvbnm123456",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9",
    "aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffffgggggggghhhhhhhh",
    "x7abcdefghijklmnk3",
]


@pytest.mark.parametrize("key", WEAK)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_weak_key_is_refused_everywhere(key: str, host: str) -> None:
    text = f"server: {{host: {host}}}\n"
    for found in (faults(text, {"TOOLCRIB_ADMIN_KEY": key}), faults(f'{text}auth: {{admin_key: "{key}"}}\n')):
        assert any("auth.admin_key: " in each for each in found)
        assert not any(key in each for each in found if key.strip() and len(key) > 8)


REACHED = ["host: 0.0.0.0", "public_url: https://tools.example", "trusted_proxies: [127.0.0.1]"]


@pytest.mark.parametrize("server", REACHED)
@pytest.mark.parametrize("key", ["sixteen-letters1", "correct-horse-battery-staple"])
def test_a_key_of_16_characters_serves_on_loopback_alone(key: str, server: str) -> None:
    assert parse(f"auth: {{admin_key: {key}}}", "toolcrib.yaml", {}).auth.admin_key == key
    (fault,) = faults(f"server: {{{server}}}\nauth: {{admin_key: {key}}}\n")
    assert "auth.admin_key: " in fault
    assert "32 characters" in fault


@pytest.mark.parametrize("server", REACHED)
def test_a_key_of_32_characters_serves_everywhere(server: str) -> None:
    text = f"server: {{{server}}}\nauth: {{admin_key: {token_hex(16)}}}\n"
    assert len(parse(text, "toolcrib.yaml", {}).auth.admin_key or "") == 32


@pytest.mark.parametrize("server", REACHED)
def test_a_repeated_16_character_key_stays_on_loopback(server: str) -> None:
    key = "k9Wq3vLx7Rt2mZs8" * 2
    assert parse(f"auth: {{admin_key: {key}}}", "toolcrib.yaml", {}).auth.admin_key == key
    (fault,) = faults(f"server: {{{server}}}\nauth: {{admin_key: {key}}}\n")
    assert "auth.admin_key: " in fault
    assert "32 characters without repetition" in fault


@pytest.mark.parametrize(
    "key, reason",
    [
        ("hunter2!" * 4, "repeats 8 characters, at least 16 without repetition are needed"),
        (
            "abcdefghijklmnopqrstuvwxyz012345",
            "consists mostly of sequences: alphabet, digits, keyboard rows or one repeated character",
        ),
    ],
)
def test_a_refusal_names_place_reason_and_remedy(key: str, reason: str) -> None:
    (fault,) = faults(f'auth: {{admin_key: "{key}"}}\n')
    assert fault.startswith("toolcrib.yaml:1 auth.admin_key: ")
    assert reason in fault
    assert "openssl rand -hex 32" in fault


ALPHABETS = {
    "hex": "0123456789abcdef",
    "base32": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "base64": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
}


@pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS)
@given(random=st.randoms(use_true_random=True), length=st.integers(MIN_LOOPBACK_KEY_CHARACTERS, 128))
@settings(max_examples=500, deadline=None)
def test_random_keys_of_every_length_are_accepted(alphabet: str, random: Random, length: int) -> None:
    key = "".join(random.choices(alphabet, k=length))
    assert weakness(key) is None
    assert length < MIN_ADMIN_KEY_CHARACTERS or too_short(key, MIN_ADMIN_KEY_CHARACTERS) is None


def test_random_keys_are_not_weak() -> None:
    made = [token_hex(size) for size in (16, 32)] + [token_urlsafe(24) for _ in range(1000)]
    assert [key for key in made if weakness(key) is not None] == []


@pytest.mark.parametrize("key", [*WEAK, "", "short-but-not-weak-here"])
async def test_a_weak_key_in_the_file_is_refused(tmp_path: Path, key: str) -> None:
    env = {"TOOLCRIB_HOME": str(tmp_path)}
    (tmp_path / FILE).write_text(f"{key}\n")
    (tmp_path / FILE).chmod(0o600)
    with pytest.raises(ConfigError, match=r"auth\.admin_key"):
        async with build(default_document(env), env=env):
            pass
