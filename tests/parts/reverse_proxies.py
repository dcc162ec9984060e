"""Reverse proxies from apt, which stand before a gateway in tests: nginx and HAProxy."""

from pathlib import Path

from tests.parts.install import Missing, apt, on_path

PACKAGES = {"nginx": "nginx-light", "haproxy": "haproxy"}


def find(name: str) -> Path | None:
    known = Path("/usr/sbin") / name
    return on_path(name) or (known if known.is_file() else None)


def fetch(name: str) -> Path:
    apt(PACKAGES[name])
    found = find(name)
    if found is None:
        raise Missing(f"apt installed it, yet no {name} is on the PATH")
    return found
