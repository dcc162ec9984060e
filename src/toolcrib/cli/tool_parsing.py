"""A tool as a running gateway declares it, read back into a definition."""

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model import Deprecation, Example, Family, JsonObject, RateLimit, Tool


def tool_of(declared: JsonObject, family: Family) -> Tool:
    """Read the widest spelling of a tool; what a running gateway says is trusted to be well formed."""
    mark = f"[MCP:{declared['source']}] "
    return Tool(
        name=declared["names"]["qualified"],
        source=declared["source"],
        family=family,
        description=str(declared["description"]).removeprefix(mark),
        input_schema=declared["inputSchema"],
        output_schema=declared.get("outputSchema"),
        category=declared["category"],
        response_time=declared["responseTime"],
        version=declared["version"],
        permissions=frozenset(declared["permissions"]),
        tags=tuple(declared["tags"]),
        cache_ttl=declared.get("cacheTTL"),
        idempotent=declared["idempotent"],
        examples=tuple(_example(each) for each in declared["examples"]),
        aliases=tuple(declared.get("aliases", ())),
        rate_limit=_rate_limit(declared.get("rateLimit")),
        deprecated=_deprecation(declared.get("deprecated")),
        degraded=bool(declared.get("degraded")),
    )


def _example(declared: JsonObject) -> Example:
    return Example(
        description=declared["description"],
        params=declared["params"],
        expected=declared["expectedResult"],
    )


def _rate_limit(declared: object) -> RateLimit | None:
    if not isinstance(declared, Mapping):
        return None
    said = cast("Mapping[str, Any]", declared)
    return RateLimit(max_calls=said["maxCalls"], window_ms=said["windowMs"])


def _deprecation(declared: object) -> Deprecation | None:
    if not isinstance(declared, Mapping):
        return None
    said = cast("Mapping[str, Any]", declared)
    return Deprecation(
        since=said["since"],
        replacement=said["replacement"],
        removal_date=said["removalDate"],
        announced=said.get("announced"),
    )
