"""Type aliases for JSON values."""

from collections.abc import Mapping
from typing import Any

Json = Any
"""Any JSON value: a recursive union would not help the type checker, as every reader checks types."""

JsonObject = Mapping[str, Any]
