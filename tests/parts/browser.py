"""Chromium, from the machine or from apt, and the switches it needs in a container."""

from pathlib import Path

from tests.parts.install import Missing, apt, on_path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KNOWN = (Path("/usr/bin/chromium"), Path("/usr/lib/chromium/chromium"), Path("/snap/bin/chromium"))
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def find() -> Path | None:
    return on_path(*NAMES) or next((path for path in KNOWN if path.is_file()), None)


def fetch() -> Path:
    apt("chromium", "fonts-liberation")
    found = find()
    if found is None:
        raise Missing("apt installed it, yet no chromium is on the PATH")
    return found
