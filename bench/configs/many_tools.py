"""Enough tools to make ten thousand with the others, every second one in the context the list is asked in."""

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


async def look(arguments: JsonObject) -> JsonObject:
    return dict(arguments)


def stocked() -> Registry:
    registry = Registry()
    for number in range(COUNT):
        definition: JsonObject = {
            "name": f"look-up-{number:04}",
            "description": f"Look up part {number} on a shelf and say how many there are.",
            "parameters": SCHEMA,
        }
        registry.register_tool(definition, look, category="query", tags=["half"] if number % 2 else ["other"])
    return registry


registry = stocked()
