"""Fills the gateway up to 10,000 tools; every second one is in the context that is listed."""

from toolcrib.model import JsonObject
from toolcrib.sdk import Registry

COUNT = 9_996
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "shelf": {"type": "string", "description": "The shelf, such as B-12."},
        "count": {"type": "integer", "minimum": 1, "description": "How many to look for."},
    },
    "required": ["shelf"],
}


async def return_arguments(arguments: JsonObject) -> JsonObject:
    return dict(arguments)


def build_registry() -> Registry:
    registry = Registry()
    for number in range(COUNT):
        definition: JsonObject = {
            "name": f"look-up-{number:04}",
            "description": f"Look up part {number} on a shelf and return how many there are.",
            "parameters": SCHEMA,
        }
        registry.register_tool(
            definition, return_arguments, category="query", tags=["half"] if number % 2 else ["other"]
        )
    return registry


registry = build_registry()
