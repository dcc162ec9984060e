"""The signed header: it holds for one body, one user, one tool and one minute."""

import hmac
from base64 import urlsafe_b64encode

import pytest

from tests.texts import matches
from toolcrib.apps.signature import (
    KEY_HEADER,
    SIGNATURE_SECONDS,
    InvalidSignature,
    SignedRequest,
    authentication_headers,
    key_digest,
    sign,
    signing_secret,
    verify,
)
from toolcrib.apps.signature import SIGNATURE_HEADER as NAME

SECRET = key_digest("key of the app")
BODY = b'{"name": "add_reminder"}'
NOW = 1_800_000_000.0
HEADER = sign(SECRET, user="ada", tool="add_reminder", body=BODY, now=NOW)


def reason(header: str, *, secret: str = SECRET, body: bytes = BODY, now: float = NOW) -> str:
    with pytest.raises(InvalidSignature) as caught:
        verify(secret, header, body=body, now=now)
    return caught.value.reason


@pytest.mark.requirement("D6")
def test_valid_signature_yields_user_and_tool() -> None:
    assert verify(SECRET, HEADER, body=BODY, now=NOW) == SignedRequest("ada", "add_reminder")
    assert verify(SECRET, HEADER, body=BODY, now=NOW + SIGNATURE_SECONDS - 0.001) == SignedRequest(
        "ada", "add_reminder"
    )
    assert "expired" in reason(HEADER, now=NOW + SIGNATURE_SECONDS)


def test_a_webhook_is_signed_for_no_tool() -> None:
    header = sign(SECRET, user="zoë@example.com", tool="", body=b"", now=NOW)
    assert header.isascii()
    assert verify(SECRET, header, body=b"", now=NOW) == SignedRequest("zoë@example.com", "")


@pytest.mark.requirement("D6")
def test_it_does_not_hold_for_another_key_or_body() -> None:
    assert "another key" in reason(HEADER, secret=key_digest("key of another app"))
    assert "another body" in reason(HEADER, body=BODY + b" ")


@pytest.mark.requirement("D6")
def test_any_tampering_is_detected() -> None:
    for place, character in enumerate(HEADER):
        changed = HEADER[:place] + ("A" if character != "A" else "B") + HEADER[place + 1 :]
        assert reason(changed), place


@pytest.mark.parametrize("header", ["", ".", "..", "v1", "v1..", "v2.e30.e30", "é.é.é", f"v1.{'a' * 5000}.b"])
def test_anything_else_is_no_signature(header: str) -> None:
    assert reason(header)


def test_malformed_claims_are_refused_despite_valid_key() -> None:
    spoken = f"v1.{_text(b'not json')}"
    mac = hmac.digest(SECRET.encode(), spoken.encode(), "sha256")
    assert matches("apps", "malformed claims are refused despite valid key", reason(f"{spoken}.{_text(mac)}"))


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def test_the_digest_is_plain_sha256() -> None:
    assert key_digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_sent_headers_do_not_reveal_the_signing_key() -> None:
    key = "key of the app"
    headers = authentication_headers(
        key_digest(key), signing_secret(key), user="ann", tool="add", body=b"{}", now=1.0
    )
    assert headers[KEY_HEADER] == key_digest(key)
    assert verify(signing_secret(key), headers[NAME], body=b"{}", now=2.0) == SignedRequest("ann", "add")
    forged = sign(headers[KEY_HEADER], user="ann", tool="add", body=b"[]", now=1.0)
    with pytest.raises(InvalidSignature):
        verify(signing_secret(key), forged, body=b"[]", now=2.0)
    assert authentication_headers(None, None, user="ann", tool="add", body=b"{}", now=1.0) == {}
