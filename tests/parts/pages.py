"""Fixtures for tests that look at a page in a real browser: one a module, one clean context a test."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from tests.parts.browser import SWITCHES
from tests.parts.registry import require

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> "Generator[Browser]":
    """A headless Chromium. While it is open, its driver's loop runs in this thread, and no async test can."""
    program = require("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=program, headless=True, args=list(SWITCHES))
        yield running
        running.close()


@pytest.fixture
def page(browser: "Browser") -> "Generator[Page]":
    """An empty page without cookies."""
    context = browser.new_context()
    yield context.new_page()
    context.close()
