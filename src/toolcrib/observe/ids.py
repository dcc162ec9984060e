"""Ids of calls, and of traces that begin here, made quickly."""

from binascii import hexlify
from random import getrandbits
from struct import Struct

_parts = Struct("8s4sx3sx3s12s").unpack
"""Cuts 32 hex digits up; those that say which kind of UUID it is are left out."""


def new_id() -> str:
    """Make an id for a call, a trace or a correlation: the text of a random UUID."""
    # Ids must be distinct, not unguessable; a secure source would cost a system call per id.
    parts = _parts(hexlify(getrandbits(128).to_bytes(16, "big")))
    # Version 4 and the variant of RFC 9562, whose two free bits we do not need.
    return (b"%b-%b-4%b-8%b-%b" % parts).decode()
