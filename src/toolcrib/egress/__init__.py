"""Outbound connections with SSRF protection: addresses are checked after DNS resolution, before connect.

`client` sends requests over connections that an Egress allows.
"""

from toolcrib.egress.egress import INVALID_HOST, AddressRules, Egress, is_resolvable

__all__ = ["INVALID_HOST", "AddressRules", "Egress", "is_resolvable"]
