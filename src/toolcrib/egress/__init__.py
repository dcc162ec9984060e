"""Where the gateway may connect to: addresses given by others are judged after lookup, right before use.

`client` makes requests over connections that obey an Egress.
"""

from toolcrib.egress.egress import Egress

__all__ = ["Egress"]
