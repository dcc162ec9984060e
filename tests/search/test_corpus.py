"""The search corpus: definitions are indexed once, and rankings reveal no hidden tools."""

from dataclasses import replace

import pytest

from tests.search.example_tools import EXAMPLE_TOOLS
from toolcrib.model import Tool, fingerprint
from toolcrib.search import Corpus, Index
from toolcrib.search import index as module
from toolcrib.testing import a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F8")]

TOOLS = tuple(replace(tool, fingerprint=fingerprint(tool)) for tool in EXAMPLE_TOOLS)


def test_definition_is_indexed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    weighed = module.term_weights

    def counted(tool: Tool) -> dict[str, float]:
        read.append(tool.name)
        return weighed(tool)

    monkeypatch.setattr(module, "term_weights", counted)
    corpus = Corpus()
    for _ in range(3):
        Index(TOOLS, corpus)
        Index(TOOLS[:4], corpus)
    assert read == [tool.name for tool in TOOLS]
    changed = replace(TOOLS[0], description="Other words.")
    Index([replace(changed, fingerprint=fingerprint(changed)), *TOOLS[1:]], corpus)
    assert len(read) == len(TOOLS) + 1


def test_ranking_does_not_leak_hidden_tools() -> None:
    shared = Corpus()
    hidden = [a_tool(f"payroll:salary_{number}", description="Salaries of all.") for number in range(30)]
    Index((*hidden, *TOOLS), shared)
    alone, among = Index(TOOLS[:6]), Index(TOOLS[:6], shared)
    for query in (
        "salary",
        "payroll:salary_1",
        "create event",
        "mail",
        "sal",
        "sallary",
        "list files",
        "all",
    ):
        assert among.rank(query) == alone.rank(query), query


def test_stale_entries_are_dropped_when_the_majority() -> None:
    corpus = Corpus()
    now = {tool.name: tool for tool in TOOLS}
    Index(TOOLS, corpus)
    assert corpus.renewed(now) is corpus
    Index((a_tool(f"old:tool_{number}", exposed="") for number in range(1_100)), corpus)
    assert len(corpus) == 1_112
    assert corpus.renewed(now) is not corpus
    assert len(corpus.renewed(now)) == 0


async def test_catalog_is_indexed_ahead_once() -> None:
    corpus = Corpus()
    many = {tool.name: tool for tool in (*TOOLS, *(a_tool(f"m:t_{number}") for number in range(250)))}
    await corpus.read(many)
    assert len(corpus) == len(many)
    await corpus.read(many)
    assert Index(many.values(), corpus).find("forecast")[0].name == "weather:forecast"


def test_words_per_source_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WORDS_PER_SOURCE", 100)
    noise = [
        a_tool(f"noise:tool_{each}", description=" ".join(f"a{each}b{word}" for word in range(400)))
        for each in range(50)
    ]
    corpus = Corpus()
    index = Index([*noise, *TOOLS], corpus)
    assert len(set(corpus.words_with_prefix("a"))) < 1_200
    assert next(iter(index.rank("tool 49"))) == "noise:tool_49"
    assert index.rank("weather") == Index([*noise, *TOOLS]).rank("weather")
