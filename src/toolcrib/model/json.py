"""What JSON is, as far as types can say it."""

from collections.abc import Mapping
from typing import Any

Json = Any
"""Any JSON value: a recursive union would gain the type checker nothing, as every reader checks shapes."""

JsonObject = Mapping[str, Any]
