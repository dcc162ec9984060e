"""The schema cache: one entry per definition, bounded."""

from toolcrib.model import JsonObject, Tool
from toolcrib.schemas.fitting.fit import SchemaCache


def tool(fingerprint: str) -> Tool:
    return Tool(name="far:look", source="far", input_schema={"title": fingerprint}, fingerprint=fingerprint)


def test_schema_cache_is_bounded() -> None:
    made: list[str] = []

    def make(schema: JsonObject) -> str | None:
        made.append(schema["title"])
        return schema["title"] or None

    once = SchemaCache(make, max_entries=2)
    assert [once.of(tool(each)) for each in "aabab"] == list("aabab")
    assert made == ["a", "b"]
    assert [once.of(tool(each)) for each in "cbcb"] == list("cbcb")
    assert made == ["a", "b", "c", "b"]


def test_tools_outside_a_catalog_are_not_cached() -> None:
    made: list[JsonObject] = []
    once = SchemaCache(made.append)
    once.of(tool(""))
    once.of(tool(""))
    assert len(made) == 2
