"""Names: canonical, safe and flat; what folds together, what comes near."""

import re
from hashlib import sha256
from time import perf_counter
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib import names
from toolcrib.errors import Refused
from toolcrib.model import Family, Tool

SAFE = re.compile(r"[a-z][a-z0-9_]{0,63}")
FAMILIES: tuple[Family, ...] = ("function", "core", "mcp", "app", "langchain", "openapi")

sources = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True)
locals_ = st.text(min_size=1, max_size=200).filter(lambda text: ":" not in text)


def a_tool(name: str, family: Family = "function", expose_as: str | None = None) -> Tool:
    return Tool(name=name, source=name.partition(":")[0], family=family, expose_as=expose_as)


# --- canonical names


@pytest.mark.requirement("A1")
def test_a_name_is_split_at_its_first_colon() -> None:
    assert names.split("aviation_atis:get_atis") == ("aviation_atis", "get_atis")
    assert names.split("a:b:c") == ("a", "b:c")


@pytest.mark.requirement("A1", "A5")
@pytest.mark.parametrize(
    "name, says",
    [
        (":x", "nothing before the colon"),
        ("x:", "nothing after the colon"),
        (":", "nothing before the colon"),
        ("x", "it has no source"),
        ("", "it has no source"),
    ],
)
def test_an_empty_half_is_no_name(name: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        names.split(name)
    assert refused.value.problem.code == "INVALID_TOOL_NAME"


@given(st.text(alphabet="ab:", max_size=6))
def test_split_needs_source_and_name(name: str) -> None:
    source, colon, local = name.partition(":")
    if source and colon and local:
        assert ":".join(names.split(name)) == name
    else:
        with pytest.raises(Refused):
            names.split(name)


@pytest.mark.requirement("A1")
@pytest.mark.parametrize(
    "source, local", [("local", "get-datetime"), ("com.example.app", "añadir nota"), ("3d-print", "x")]
)
def test_canonical_joins_valid_names(source: str, local: str) -> None:
    assert names.split(names.canonical(source, local)) == (source, local)


@pytest.mark.requirement("A1")
@pytest.mark.parametrize(
    "source, local, says",
    [
        ("", "x", "before the colon"),
        ("x", "", "after the colon"),
        ("a:b", "x", "a source id has up to 63"),
        ("Upper", "x", "a source id has up to 63"),
        ("-dash", "x", "a source id has up to 63"),
        ("x" * 64, "x", "a source id has up to 63"),
        ("x\n", "x", "a source id has up to 63"),
        ("x", "a:b", "must not contain a colon"),
        ("x", "a" * 257, "at most 256"),
        ("x", " a", "a space at its start or end"),
        ("x", "a\x00", r"U\+0000"),
        ("x", "a\nb", r"U\+000A"),
        ("x", "a\u202eb", r"U\+202E"),
        ("x", "a\u200bb", r"U\+200B"),
        ("x", "a\u00adb", r"U\+00AD"),
        ("x", "a\U000e0041", r"U\+E0041"),
        ("x", "a\ufe0f", r"U\+FE0F"),
        ("x", "a\u3164", r"U\+3164"),
        ("x", "a\ud800", r"U\+D800"),
    ],
)
def test_canonical_refuses_ambiguous_names(source: str, local: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        names.canonical(source, local)
    assert refused.value.problem.code == "INVALID_TOOL_NAME"


def test_a_refusal_shows_a_long_or_hidden_name_harmlessly() -> None:
    with pytest.raises(Refused) as refused:
        names.canonical("x", "\u202e" + "a" * 100_000)
    assert len(str(refused.value)) < 300
    assert "\u202e" not in str(refused.value)


def test_hidden_lets_text_of_the_world_pass() -> None:
    assert names.invisible_character("größe 尺寸 размер ☂ 🙂") is None
    assert names.invisible_character("pay\u2066pal") == "U+2066"


# --- safe names


@pytest.mark.requirement("A2")
@pytest.mark.parametrize(
    "text, spelled",
    [
        ("readFile", "read_file"),
        ("HTTPServer", "http_server"),
        ("getHTTPResponse", "get_http_response"),
        ("get-atis", "get_atis"),
        ("get2Files", "get2_files"),
        ("com.example.App", "com_example_app"),
        ("__x--y__", "x_y"),
        ("ＡＢ①", "ab1"),
        ("天気", ""),
        ("", ""),
    ],
)
def test_snake(text: str, spelled: str) -> None:
    assert names.snake_case(text) == spelled


@given(st.text())
def test_snake_is_stable_and_plain(text: str) -> None:
    once = names.snake_case(text)
    assert names.snake_case(once) == once
    assert re.fullmatch(r"([a-z0-9]+(_[a-z0-9]+)*)?", once)
    assert names.snake_case(normalize("NFKC", text)) == once


@pytest.mark.requirement("A2")
@pytest.mark.parametrize(
    "name, family, exposed",
    [
        ("aviation_atis:get_atis", "mcp", "mcp_aviation_atis_get_atis"),
        ("fileServer:readFile", "mcp", "mcp_file_server_read_file"),
        ("com.example.reminder:add-reminder", "app", "com_example_reminder_add_reminder"),
        ("petstore:listPets", "openapi", "petstore_list_pets"),
        ("local:get-datetime", "function", "get_datetime"),
        ("crib:search_tools", "core", "search_tools"),
        ("chain:Wikipedia", "langchain", "wikipedia"),
        ("local:3d_print", "function", "t_3d_print"),
        ("3d.app:print", "app", "t_3d_app_print"),
    ],
)
def test_safe_names_by_family(name: str, family: Family, exposed: str) -> None:
    assert names.safe(a_tool(name, family)) == exposed


@pytest.mark.requirement("A3")
def test_unrepresentable_name_is_hashed() -> None:
    digest = sha256("local:天気".encode()).hexdigest()[:8]
    assert names.safe(a_tool("local:天気")) == f"t_{digest}"
    assert names.safe(a_tool("weather:天気", "mcp")).startswith("mcp_weather_t_")
    assert names.safe(a_tool("local:天気")) != names.safe(a_tool("local:時刻"))


@pytest.mark.requirement("A3")
def test_an_over_long_name_is_cut_and_ends_in_its_hash() -> None:
    name = "files:" + "read_every_file_" * 10
    digest = sha256(name.encode()).hexdigest()[:8]
    exposed = names.safe(a_tool(name, "mcp"))
    assert len(exposed) <= 64
    assert exposed.endswith(f"_{digest}")
    assert "__" not in exposed


@pytest.mark.no_cover
@pytest.mark.requirement("A2", "A3")
@given(sources, locals_, st.sampled_from(FAMILIES))
def test_safe_names_fit_every_provider_and_never_change(source: str, local: str, family: Family) -> None:
    name = f"{source}:{local}"
    exposed = names.safe(a_tool(name, family))
    assert SAFE.fullmatch(exposed)
    assert names.safe(Tool(name=name, source=source, family=family, description="another")) == exposed
    assert names.snake_case(exposed).replace("_", "") == exposed.replace("_", "")


@pytest.mark.requirement("A3")
@given(st.lists(st.text(alphabet="abc_", max_size=20), min_size=2, max_size=10, unique=True))
def test_over_long_names_that_differ_stay_different(tails: list[str]) -> None:
    tools = [a_tool(f"server:{'x' * 80}{tail}", "mcp") for tail in tails]
    assert len({names.safe(tool) for tool in tools}) == len(tools)


@pytest.mark.requirement("A2")
def test_expose_as_is_taken_as_it_is() -> None:
    assert names.safe(a_tool("s:t", "mcp", expose_as="weather")) == "weather"


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("name", ["", "Weather", "get-weather", "9lives", "_x", "a" * 65, "a\n", "wéather"])
def test_a_bad_expose_as_is_refused_with_its_reason(name: str) -> None:
    with pytest.raises(Refused) as refused:
        names.safe(a_tool("s:t", expose_as=name))
    assert matches(
        "server",
        "a bad expose as is refused with its reason",
        str(refused.value).replace(repr(name), "{name}"),
    )
    assert refused.value.problem.code == "INVALID_TOOL_NAME"
    assert refused.value.problem.path == "expose_as"


# --- folding


@pytest.mark.requirement("A4", "A5")
@pytest.mark.parametrize(
    "one, other",
    [
        ("get-atis", "get_atis"),
        ("Get_Atis", "get_atis"),
        ("ＧＥＴ", "get"),
        ("straße", "STRASSE"),
        ("cafe\u0301", "café"),
        ("\ufb01le", "file"),
        ("a\uff0db", "a_b"),
    ],
)
def test_spellings_that_are_the_same_name(one: str, other: str) -> None:
    assert names.fold(one) == names.fold(other)


def test_spellings_that_are_not() -> None:
    assert names.fold("get_atis") != names.fold("getatis")
    assert names.fold("a:b") != names.fold("a_b")


@pytest.mark.requirement("A4")
@given(st.text())
def test_fold_is_stable_under_case_form_and_itself(name: str) -> None:
    folded = names.fold(name)
    assert names.fold(folded) == folded
    assert names.fold(name.casefold()) == folded
    assert names.fold(normalize("NFD", name)) == folded
    assert names.fold(normalize("NFKC", name)) == folded
    assert names.fold(name.replace("_", "-")) == folded


def test_non_name_is_not_folded() -> None:
    # Normalised, these marks would take hours, and any caller can ask for a tool by such a name.
    marks = "a" + "\u0301\u0316" * 1_000_000
    assert names.fold(marks) == marks


# --- near matches

TOOLS = (
    *(f"srv{n % 40}:{'gs'[n % 2]}et_row{n}" for n in range(400)),
    "aviation_atis:get_atis",
    "com.example.reminder:add-reminder",
    "local:get-datetime",
    "local:echo",
)


@pytest.mark.requirement("A5")
@pytest.mark.parametrize(
    "typed, meant",
    [
        ("aviation_atis:get_atsi", "aviation_atis:get_atis"),  # letters swapped
        ("aviaton_atis:get_atis", "aviation_atis:get_atis"),  # a letter lost
        ("local:ehco", "local:echo"),
        ("ehco", "local:echo"),
        ("get_dateitme", "local:get-datetime"),
        ("atis_get", "aviation_atis:get_atis"),  # words swapped
        ("datetime-get", "local:get-datetime"),
        ("get_atis", "aviation_atis:get_atis"),  # prefix missing
        ("add_reminder", "com.example.reminder:add-reminder"),
        ("functions.get_datetime", "local:get-datetime"),  # prefix too many
        ("getDatetime", "local:get-datetime"),
        ("GET_DATETIME", "local:get-datetime"),
        ("Local:Echo", "local:echo"),
    ],
)
def test_near_finds_similar_names(typed: str, meant: str) -> None:
    assert names.similar_names(typed, TOOLS)[0] == meant


@pytest.mark.parametrize("typed", ["", ":", "zzzzzz", "☂", "x" * 100_000])
def test_near_finds_nothing_in_nonsense(typed: str) -> None:
    assert names.similar_names(typed, TOOLS) == ()
    assert names.similar_names(typed, ()) == ()


@pytest.mark.requirement("E19")
@pytest.mark.parametrize(
    "typed, candidates, meant",
    [
        ("get_crad", ["cards:get-card", "cards:list-decks"], "cards:get-card"),
        ("get-card", ["a:get-card", "b:get-card"], None),
        ("remove-card", ["cards:delete-card"], None),
        ("get-card", [], None),
    ],
)
def test_nearest_name_is_clear_or_none(typed: str, candidates: list[str], meant: str | None) -> None:
    assert names.clearly_nearest(typed, candidates) == meant


@pytest.mark.requirement("A5")
@given(st.text(max_size=40), st.lists(st.text(max_size=40), max_size=30), st.integers(0, 4))
def test_near_gives_a_few_of_the_candidates_always_the_same(
    name: str, candidates: list[str], limit: int
) -> None:
    found = names.similar_names(name, candidates, limit)
    assert len(found) <= limit
    assert set(found) <= set(candidates)
    assert names.similar_names(name, iter(candidates), limit) == found


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["mcp_server_12_read_page", "get_row", "ehco", "e" * 96, "a_b_c_d_e_f_g_h"])
def test_near_is_quick_among_ten_thousand(typed: str) -> None:
    verbs = ("get", "set", "list", "create", "delete", "update", "search", "send")
    nouns = ("row", "page", "issue", "message", "event", "calendar", "commit", "channel")
    many = [
        f"server_{n % 50}:{verbs[n % 8]}_{nouns[n // 8 % 8]}_{nouns[n // 64 % 8]}_{n}" for n in range(10_000)
    ]
    times: list[float] = []
    for _ in range(5):
        started = perf_counter()
        names.similar_names(typed, many)
        times.append(perf_counter() - started)
    assert min(times) < 0.5  # about 0.005 where nobody counts the lines; comparing each would take a second
