"""The hints of a result on the web page: buttons that do what is suggested, and text for the rest."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import Field

from tests.walks.test_page import Seen, opened
from toolcrib import BusinessRuleError, ToolResult, create_tool, hints

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow, pytest.mark.requirement("E6", "F10")]

HOSTILE = '<img src=x onerror="window.hacked=1">'
CALLED: list[tuple[str, Any]] = []
WARNED = {"type": "conflict", "severity": "high", "message": f"Two match {HOSTILE}.", "suggestedFix": "Pick."}


def step(tool: str, description: str = "Go on.", **data: Any) -> dict[str, Any]:
    return {
        "action": "go-on",
        "priority": "high",
        "description": description,
        "data": {"tool": f"tools:{tool}", **data},
    }


SESSION = {"method": "POST", "path": "/api/users/ann/session", "body": {"device": HOSTILE}}
STEPS = {
    "read": [step("read-note", HOSTILE, arguments={"note": HOSTILE, "tags": ["a", "b"]})],
    "write": [step("write-note", arguments={"note": "milk"})],
    "wait": [step("read-note", arguments={"note": "later", "tags": []}, repair=True, after=600)],
    "request": [{"action": "begin", "priority": "high", "data": {"request": SESSION}}],
    "hidden": [step("no-such-note", arguments={}), step("read-note")],
    "odd": [step("read-note", arguments={"note": " ", "tags": [], "more": {"deep": 1}})],
    "nothing": [],
}


@create_tool(category="query")
async def suggest(kind: Annotated[str, Field(description="Which step to suggest.")]) -> ToolResult[str]:
    """Suggest the next step of a kind."""
    if kind == "refuse":
        advice = hints.action("ask", "high", description="Ask the user.")
        raise BusinessRuleError("NOT_NOW", "Not now.", hints=hints.failed("Not now.", next=advice))
    warnings = [WARNED] if kind == "read" else []
    return ToolResult(data=kind, hints={"suggestedNextActions": STEPS[kind], "warnings": warnings})


@create_tool(category="query")
async def read_note(note: str, tags: list[str], more: dict[str, int] | None = None) -> str:
    """Read a note."""
    CALLED.append(("read", (note, tags, more)))
    return f"read {note}"


@create_tool(category="mutation")
async def write_note(note: str) -> str:
    """Write a note."""
    CALLED.append(("write", note))
    return f"wrote {note}"


@pytest.fixture
def seen(page: "Page") -> Generator[Seen]:
    CALLED.clear()
    with opened(page, tools=[suggest, read_note, write_note]) as browser:
        browser.sign_in()
        yield browser


def suggested(seen: Seen, kind: str) -> "Locator":
    """Run the tool that suggests; the place of its next steps."""
    seen.choose("suggest the next step")
    seen.page.fill("#tool textarea", kind)
    seen.page.click("#tool button[type=submit]")
    seen.page.wait_for_selector(".outcome [role=tablist]")
    return seen.page.locator(".outcome .steps")


def test_a_suggested_query_is_opened_and_run(seen: Seen) -> None:
    steps = suggested(seen, "read")
    assert steps.get_by_role("heading").text_content() == "Next steps"
    assert WARNED["message"] in (steps.locator(".notice").text_content() or "")
    steps.get_by_role("button").click()
    seen.page.wait_for_selector(".outcome pre >> text=read")
    assert CALLED == [("read", (HOSTILE, ["a", "b"], None))]
    assert seen.page.locator("#tool h3").text_content() == "tools:read-note"
    assert seen.page.locator("#tool textarea").first.input_value() == HOSTILE
    assert seen.page.evaluate("document.activeElement.tagName") == "H3"
    assert seen.page.evaluate("window.hacked") is None
    assert seen.troubles == []


def test_a_suggested_change_waits_for_run(seen: Seen) -> None:
    suggested(seen, "write").get_by_role("button").click()
    seen.page.wait_for_selector("#tool h3 >> text=write-note")
    assert seen.page.locator("#tool textarea").first.input_value() == "milk"
    assert seen.page.evaluate("document.activeElement.textContent") == "Run"
    assert CALLED == []
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_selector(".outcome pre >> text=wrote milk")
    assert CALLED == [("write", "milk")]


def test_a_call_for_later_counts_down(seen: Seen) -> None:
    seen.page.clock.install()
    button = suggested(seen, "wait").get_by_role("button")
    assert button.is_disabled()
    assert button.locator(".wait").text_content() == " in 10 min"
    seen.page.clock.fast_forward("09:00")
    assert button.is_disabled()
    seen.page.clock.fast_forward("01:01")
    button.click()
    seen.page.wait_for_selector(".outcome pre >> text=read later")
    assert CALLED == [("read", ("later", [], None))]


def test_a_request_shows_method_and_path(seen: Seen) -> None:
    steps = suggested(seen, "request")
    assert "POST /api/users/ann/session" in (steps.text_content() or "")
    assert HOSTILE.replace('"', '\\"') in (steps.text_content() or "")
    assert steps.get_by_role("button").count() == 0
    assert seen.page.evaluate("window.hacked") is None


@pytest.mark.parametrize("kind", ["hidden", "nothing"])
def test_what_cannot_be_done_has_no_button(seen: Seen, kind: str) -> None:
    assert suggested(seen, kind).count() == 0
    assert seen.troubles == []


def test_advice_of_an_error_is_text(seen: Seen) -> None:
    steps = suggested(seen, "refuse")
    assert "Ask the user." in (steps.text_content() or "")
    assert steps.get_by_role("button").count() == 0


def test_arguments_that_no_field_holds_are_kept(seen: Seen) -> None:
    suggested(seen, "odd").get_by_role("button").click()
    seen.page.wait_for_selector(".outcome [role=tablist]")
    assert CALLED == [("read", (" ", [], {"deep": 1}))]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_steps_fit_the_screen(seen: Seen, scheme: str, width: int) -> None:
    seen.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    seen.page.set_viewport_size({"width": width, "height": 800})
    steps = suggested(seen, "read")
    box, button = steps.bounding_box(), steps.get_by_role("button").bounding_box()
    assert box is not None
    assert button is not None
    assert button["x"] + button["width"] <= box["x"] + box["width"] <= width
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
