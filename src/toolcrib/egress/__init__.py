"""Where the gateway may connect to: addresses given by others are judged after lookup, right before use.

`connect` makes connections that obey an Egress; it is apart because it loads an HTTP client.
"""

from toolcrib.egress.egress import Egress

__all__ = ["Egress"]
