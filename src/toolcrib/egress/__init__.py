"""Outbound connections with SSRF protection: addresses are checked after DNS resolution, before connect.

`client` sends requests over connections that an Egress allows.
"""

from toolcrib.egress.egress import UNNAMEABLE, AddressRules, Egress, can_be_looked_up

__all__ = ["UNNAMEABLE", "AddressRules", "Egress", "can_be_looked_up"]
