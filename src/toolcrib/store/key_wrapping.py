"""Wraps the key that encrypts stored secrets with a secret of the operator's, and opens it again."""

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
CHECK_BYTES = 16
LONG_SECRET_BYTES = 32
"""So many bytes nobody tries out; deriving from a shorter one is made slow."""
_PURPOSE = b"toolcrib: wraps the key of stored secrets"


@dataclass(frozen=True, slots=True)
class WrappingSecret:
    """What the operator has and the store does not."""

    kind: SecretKind
    value: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WrappingSecrets:
    """Where the secrets come from; asked only once there is something to encrypt or to open."""

    current: Callable[[], WrappingSecret | None]
    """The one in force; None where nobody gave one and none was made yet."""
    make: Callable[[], WrappingSecret]
    """The same, made where there is none."""
    earlier: Callable[[], Sequence[WrappingSecret]]
    """Others that may have been in force before."""


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key as it is stored: useless without the secret that wraps it."""

    id: str
    wrapped_by: SecretKind
    salt: str
    check: str
    """Tells whether a secret is the right one, without opening anything."""
    wrapped: str
    created: float


def wrap(data_key: bytes, secret: WrappingSecret, *, id: str, created: float) -> WrappedKey:
    """Wrap a data key with a secret and a fresh salt."""
    salt, nonce = token_bytes(SALT_BYTES), token_bytes(NONCE_BYTES)
    wrapping, check = _derived(secret.value, salt)
    sealed = nonce + _aead(wrapping).encrypt(nonce, data_key, _about(id))
    return WrappedKey(id, secret.kind, salt.hex(), check.hex(), text_of(sealed), created)


def opens(key: WrappedKey, secret: WrappingSecret) -> bool:
    """Whether a secret is the one that wraps a key."""
    return compare_digest(_derived(secret.value, bytes.fromhex(key.salt))[1].hex(), key.check)


def unwrap(key: WrappedKey, secret: WrappingSecret) -> bytes:
    """Return the data key; raises ValueError where the row was changed."""
    from cryptography.exceptions import InvalidTag

    wrapping, _ = _derived(secret.value, bytes.fromhex(key.salt))
    sealed = bytes_of(key.wrapped)
    try:
        return _aead(wrapping).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _about(key.id))
    except InvalidTag:
        message = f"data key {key.id} was changed"
        raise ValueError(message) from None


def text_of(data: bytes) -> str:
    """Spell bytes for a column of text."""
    return urlsafe_b64encode(data).decode()


def bytes_of(text: str) -> bytes:
    """Read what `text_of` wrote."""
    return urlsafe_b64decode(text)


def _derived(secret: bytes, salt: bytes) -> tuple[bytes, bytes]:
    """Return the key that wraps and the value it is recognised by: HKDF-SHA256 (RFC 5869)."""
    if len(secret) < LONG_SECRET_BYTES:
        secret = scrypt(secret, salt=salt, n=1 << 14, r=8, p=1, dklen=32)
    root = keyed(salt, secret, "sha256")
    first = keyed(root, _PURPOSE + b"\x01", "sha256")
    return first, keyed(root, first + _PURPOSE + b"\x02", "sha256")[:CHECK_BYTES]


def _about(id: str) -> bytes:
    return dumps(["toolcrib data key", id]).encode()


def _aead(key: bytes) -> "AESGCM":
    # Late: it takes 80 ms and 9 MB, and most gateways have nothing to encrypt.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
