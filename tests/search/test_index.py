"""What is found, and in which order."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search.example_tools import EXAMPLE_TOOLS
from toolcrib.model import Tool
from toolcrib.search import Corpus, Index
from toolcrib.testing import a_tool

pytestmark = pytest.mark.requirement("F8")

INDEX = Index(EXAMPLE_TOOLS)


def found(query: str, index: Index = INDEX) -> list[str]:
    return [tool.name for tool in index.find(query)]


@pytest.mark.parametrize(
    "query, best",
    [
        ("create an event", "calendar:create_event"),
        ("make an appointment in my calendar", "calendar:create_event"),
        ("what is on the agenda", "calendar:create_event"),
        ("events between dates", "calendar:list_events"),
        ("send a mail", "mail:sendMessage"),
        ("SEND MESSAGES", "mail:sendMessage"),
        ("search mail", "mail:search_messages"),
        ("reading files", "files:read_file"),
        ("readfile", "files:read_file"),
        ("tree of directories", "files:directory_tree"),
        ("reviewers", "github:create_pull_request"),
        ("icao airport weather", "weather:forecast"),
        ("wether forcast", "weather:forecast"),
        ("repo branc", "github:list_branches"),
        ("ubersicht", "shop:getURLs"),
        ("ÜBERSICHT", "shop:getURLs"),
        ("category id", "shop:getURLs"),
        ("notiere bitte", "com.example.notes:add"),
        ("笔记", "com.example.notes:add"),
        ("productivity", "com.example.notes:add"),
    ],
)
def test_best_match_comes_first(query: str, best: str) -> None:
    assert found(query)[0] == best


def test_more_matching_words_rank_higher() -> None:
    assert found("calendar list")[0] == "calendar:list_events"
    assert set(found("calendar list")) >= {"calendar:create_event", "github:list_branches"}
    assert found("file astronomy") == found("file")


def test_exact_name_comes_first_in_any_case() -> None:
    longer = a_tool("files:read_file_read_file", description="read file read file read file")
    index = Index((longer, *EXAMPLE_TOOLS))
    for query in ("read_file", "read-file", "READ_FILE", "files:read_file"):
        assert found(query, index)[0] == "files:read_file"
    assert index.rank("read_file")["files:read_file"] > 100


def test_last_word_matches_as_prefix() -> None:
    assert found("direc") == ["files:directory_tree"]
    assert found("direc ") == [], "a space ends the word"
    assert found("d") == [], "one letter begins too much"
    assert "files:directory_tree" not in found("direc mail"), "only the last is being typed"


def test_typo_is_corrected_if_no_tool_has_the_word() -> None:
    for slip in ("calender", "calndar", "calenndar", "claendar"):
        assert found(f"{slip} ")[:2] == ["calendar:create_event", "calendar:list_events"], slip
    assert found("calxndxr ") == []


@pytest.mark.parametrize("query", ["", "  ", "\n"])
def test_empty_query_returns_all_in_order(query: str) -> None:
    assert INDEX.find(query) == EXAMPLE_TOOLS
    assert INDEX.find(query, 2) == EXAMPLE_TOOLS[:2]
    assert INDEX.rank(query) == {}


@pytest.mark.parametrize("query", ["astronomy", "of the", "…", "\x00", "🙂"])
def test_unknown_word_finds_nothing(query: str) -> None:
    assert INDEX.find(query) == ()


def test_equal_scores_keep_order_within_the_limit() -> None:
    twins = [a_tool(f"a:same_{number:03}", description="Alike.") for number in range(100)]
    index = Index(twins)
    assert found("same", index) == [tool.name for tool in twins]
    assert [tool.name for tool in index.find("same", 3)] == [tool.name for tool in twins[:3]]
    assert list(INDEX.rank("create calendar", 1)) == found("create calendar")[:1]


def test_frequent_words_rank_but_do_not_select() -> None:
    crowd = [a_tool(f"crowd:get_{number}", description="Get a part.") for number in range(200)]
    index = Index((*crowd, a_tool("one:get_lamp", description="Get a lamp."), a_tool("one:lamp")))
    assert found("get the lamp", index) == ["one:get_lamp", "one:lamp"]
    assert len(found("get", index)) == 201, "where there is nothing else, it has to choose"
    assert len(found("get part", index)) == 200


def test_conversation_as_query() -> None:
    talk = "Please be so kind. " * 2_000 + "Could you look up the weather at the airport for tomorrow?"
    assert next(iter(INDEX.rank(talk))) == "weather:forecast"


@given(st.text(max_size=40))
def test_find_and_rank_agree(query: str) -> None:
    ranked = INDEX.rank(query)
    assert list(ranked.values()) == sorted(ranked.values(), reverse=True)
    if query.strip():
        assert found(query) == list(ranked)


@given(
    st.lists(st.sampled_from(EXAMPLE_TOOLS), unique_by=lambda tool: tool.name), st.sampled_from(EXAMPLE_TOOLS)
)
def test_visible_tool_is_found_by_name(seen: list[Tool], tool: Tool) -> None:
    listed = [*(each for each in seen if each.name != tool.name), tool]
    assert found(tool.name, Index(listed))[0] == tool.name
    assert tool.name not in found(tool.name, Index(listed[:-1]))


def test_unreadable_definition_is_found_by_name() -> None:
    odd = replace(
        a_tool("odd:schema"),
        input_schema={
            "type": "object",
            "properties": {"a": True, "b": {"items": [1], "properties": None, "description": 7}, "c": {}},
        },
        extensions={"activationPhrases": "none", "category": None},
    )
    assert found("schema", Index([odd])) == ["odd:schema"]
    assert found("7", Index([odd])) == ["odd:schema"]


def test_ties_with_the_last_result_are_counted() -> None:
    index = Index(tuple(a_tool(f"x:same-{n}", description="A lamp.") for n in range(9)))
    assert len(index.fit("lamp", 3)) == 9
    assert set(index.fit("lamp", 3).values()) == {index.rank("lamp")["x:same-0"]}
    assert list(INDEX.fit("create an event", 1)) == ["calendar:create_event"]
    assert INDEX.fit("astronomy", 3) == INDEX.fit(" ", 3) == {}


def test_only_latest_words_are_spell_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    sized = Corpus.words_of_length

    def counting(corpus: Corpus, beginning: str, lengths: Iterable[int]) -> Iterator[str]:
        looked.append(beginning)
        return sized(corpus, beginning, lengths)

    monkeypatch.setattr(Corpus, "words_of_length", counting)
    talk = " ".join(f"qqqq{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10]}" for n in range(100))
    assert found(f"{talk} 12345 forcast")[0] == "weather:forecast"
    assert len(looked) <= 8
    assert found("12346") == []
