"""Ids of calls, and of traces that begin here, made quickly."""

from random import getrandbits


def new_id() -> str:
    """Make an id for a call, a trace or a correlation: the text of a random UUID."""
    # Ids must be distinct, not unguessable; a secure source would cost a system call per id.
    digits = getrandbits(128).to_bytes(16, "big").hex()
    # Version 4 and the variant of RFC 9562, whose two free bits we do not need.
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
