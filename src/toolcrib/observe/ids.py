"""Fast generation of ids for calls, and for traces that start here (random UUIDs, version 4)."""

from binascii import hexlify
from random import getrandbits
from struct import Struct

_parts = Struct("8s4sx3sx3s12s").unpack
"""Splits 32 hex digits into UUID groups; the digits for version and variant are skipped."""


def new_id() -> str:
    """Return a new id for a call, a trace or a correlation: the text of a random UUID."""
    # Ids must be distinct, not unguessable; a secure source would cost a system call per id.
    parts = _parts(hexlify(getrandbits(128).to_bytes(16, "big")))
    # Version 4 and the variant of RFC 9562; its two free bits are not needed.
    return (b"%b-%b-4%b-8%b-%b" % parts).decode()
