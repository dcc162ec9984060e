"""Outbound connections with SSRF protection: addresses are checked after DNS resolution, before connect.

`client` sends requests over connections that an Egress allows.
"""

from toolcrib.egress.egress import UNNAMEABLE, Egress, can_be_looked_up
from toolcrib.egress.rules import AddressRules

__all__ = ["UNNAMEABLE", "AddressRules", "Egress", "can_be_looked_up"]
