"""Where the gateway may connect to: addresses given by others are judged after lookup, right before use.

`client` makes requests over connections that obey an Egress.
"""

from toolcrib.egress.egress import UNNAMEABLE, Egress, can_be_looked_up
from toolcrib.egress.rules import AddressRules

__all__ = ["UNNAMEABLE", "AddressRules", "Egress", "can_be_looked_up"]
