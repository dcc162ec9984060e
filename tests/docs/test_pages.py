"""Links resolve, every page is reachable, and tables are current."""

from pathlib import Path

import pytest

from tests.docs import tables
from tests.docs.pages import DOCS, README, ROOT, anchors, broken_links, fences, linked, name_of, pages
from tests.docs.snippets import FRAGMENT
from toolcrib.errors import CODES


@pytest.mark.parametrize("page", [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=name_of)
def test_every_link_and_anchor_leads_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = {README}, [README]
    while waiting:
        fresh = {page for page in linked(waiting.pop()) if page.suffix == ".md"} - reached
        reached |= fresh
        waiting += fresh
    assert sorted(name_of(page) for page in set(pages()) - reached) == []


def test_generated_tables_are_current() -> None:
    stale = list(tables.stale())
    assert stale == [], "run `python -m tests.docs.generate` and look at what changed"


@pytest.mark.requirement("E19")
@pytest.mark.parametrize("code", sorted(CODES))
def test_section_of_each_code_gives_the_advice_of_the_table(code: str) -> None:
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    section = page.partition(f"\n### {code}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    assert " ".join(section.split()).endswith(tables.advice_text(code))


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_code_blocks_have_language_and_end(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("\n```") == 2 * len(fences(text)), "a block is not closed"
    known = {"json", "python", "sh", "text", "yaml"}
    assert [fence.line for fence in fences(text) if fence.language not in known] == []


def test_provider_page_programs_run_with_the_sdk() -> None:
    folder = ROOT / "tests" / "formats" / "realtime"
    run = "".join(file.read_text(encoding="utf-8") for file in folder.glob("test_*.py"))
    programs = [
        fence
        for page in sorted((DOCS / "formats").glob("*.md"))
        for fence in fences(page.read_text(encoding="utf-8"))
        if fence.mark == FRAGMENT
    ]
    assert len(programs) >= 9
    assert [each.file for each in programs if f'"{each.file}"' not in run] == []


@pytest.mark.parametrize(
    "text, count",
    [
        ("[x](why.md)", 0),
        ("[x](why.md#guarantees)", 0),
        ("[x](why.md#what-we-never-said)", 1),
        ("[x](nowhere.md)", 1),
        ("![x](pictures/nothing.svg)", 1),
        ("# Here it is\n[x](#here-it-is)", 0),
        ("# Here it is\n[x](#there)", 1),
        ("`[x](nowhere.md)`", 0),
        ("[x](https://example.com/nowhere)", 0),
    ],
)
def test_the_gate_of_links_can_fail(text: str, count: int) -> None:
    assert len(broken_links(DOCS / "some.md", text)) == count


def test_anchors_are_made_as_git_hosts_make_them() -> None:
    text = "# What's `new`?\n## GET /api/tools\n## Twice\n## Twice\n```sh\n# not one\n```\n"
    assert anchors(text) == {"whats-new", "get-apitools", "twice", "twice-1"}


def test_the_gate_of_tables_can_fail() -> None:
    page = "before\n<!-- generated: codes -->\n| old |\n<!-- end -->\nafter\n"
    filled = tables.fill(page)
    assert filled != page
    assert "| old |" not in filled
    assert tables.fill(filled) == filled
    assert filled.startswith("before\n")
    assert filled.endswith("<!-- end -->\nafter\n")


def test_unserved_settings_are_marked() -> None:
    assert tables.is_later("openapi")
    assert not tables.is_later("mcp.servers.<name>.tools[].slow_response_message")
    assert not tables.is_later("limits.process")
    assert not tables.is_later("contexts.<name>.tools")
    assert not tables.is_later("limits.per_user")
