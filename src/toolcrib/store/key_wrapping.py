"""Envelope encryption: wraps the data key of stored secrets with a secret of the operator, and unwraps it."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import scrypt
from hmac import compare_digest
from hmac import digest as keyed
from json import dumps
from secrets import token_bytes
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SecretKind = Literal["admin_key", "key_file"]

DATA_KEY_BYTES = 32
SALT_BYTES = 16
NONCE_BYTES = 12
CHECK_VALUE_BYTES = 16
MIN_UNSTRETCHED_SECRET_BYTES = 32
"""Bytes from which a secret resists brute force; a shorter one is stretched with scrypt."""
_PURPOSE = b"toolcrib: wraps the key of stored secrets"


@dataclass(frozen=True, slots=True)
class WrappingSecret:
    """A secret that the operator has and the store does not: the admin key or the content of a key file."""

    kind: SecretKind
    value: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WrappingSecrets:
    """Lazy providers of wrapping secrets; called only if there is something to encrypt or decrypt."""

    current: Callable[[], WrappingSecret | None]
    """Returns the current secret; None if none was configured and none was generated yet."""
    make: Callable[[], WrappingSecret]
    """Returns the current secret, and generates one if there is none."""
    earlier: Callable[[], Sequence[WrappingSecret]]
    """Returns other secrets that may have been in use before."""


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key as stored: encrypted with a key derived from the wrapping secret."""

    id: str
    wrapped_by: SecretKind
    salt: str
    check: str
    """Key check value: verifies a wrapping secret without decrypting."""
    wrapped: str
    created: float


def wrap(data_key: bytes, secret: WrappingSecret, *, id: str, created: float) -> WrappedKey:
    """Encrypt a data key with a key derived from a secret and a fresh salt."""
    salt, nonce = token_bytes(SALT_BYTES), token_bytes(NONCE_BYTES)
    wrapping, check = _derive_keys(secret.value, salt)
    sealed = nonce + _aead(wrapping).encrypt(nonce, data_key, _associated_data(id))
    return WrappedKey(id, secret.kind, salt.hex(), check.hex(), encode_base64(sealed), created)


def unwraps(key: WrappedKey, secret: WrappingSecret) -> bool:
    """Whether a secret unwraps a key; compares key check values in constant time."""
    return compare_digest(_derive_keys(secret.value, bytes.fromhex(key.salt))[1].hex(), key.check)


def unwrap(key: WrappedKey, secret: WrappingSecret) -> bytes:
    """Return the data key; raise ValueError if the row was tampered with."""
    from cryptography.exceptions import InvalidTag

    wrapping, _ = _derive_keys(secret.value, bytes.fromhex(key.salt))
    sealed = decode_base64(key.wrapped)
    try:
        return _aead(wrapping).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _associated_data(key.id))
    except InvalidTag:
        message = f"data key {key.id} was changed"
        raise ValueError(message) from None


def encode_base64(data: bytes) -> str:
    """Encode bytes as URL-safe Base64, for a text column."""
    return urlsafe_b64encode(data).decode()


def decode_base64(text: str) -> bytes:
    """Decode the Base64 of `text_of`."""
    return urlsafe_b64decode(text)


def _derive_keys(secret: bytes, salt: bytes) -> tuple[bytes, bytes]:
    """Derive the wrapping key and its check value with HKDF-SHA256 (RFC 5869)."""
    if len(secret) < MIN_UNSTRETCHED_SECRET_BYTES:
        secret = scrypt(secret, salt=salt, n=1 << 14, r=8, p=1, dklen=32)
    root = keyed(salt, secret, "sha256")
    first = keyed(root, _PURPOSE + b"\x01", "sha256")
    return first, keyed(root, first + _PURPOSE + b"\x02", "sha256")[:CHECK_VALUE_BYTES]


def _associated_data(id: str) -> bytes:
    return dumps(["toolcrib data key", id]).encode()


def _aead(key: bytes) -> "AESGCM":
    # Lazy import: it costs 80 ms and 9 MB, and most gateways have nothing to encrypt.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
