"""The project files that the gates check: tracked or untracked, without ignored files."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("src", "tests", "bench", "examples")
LEFT_BEHIND = frozenset(
    {".git", ".venv", ".parts", ".toolcrib", "__pycache__", ".hypothesis", "dist", "build", "mutants"}
)


def git(*arguments: str) -> str | None:
    """Output of git, or None without git or on failure."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


@cache
def files() -> tuple[Path, ...]:
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "-z")
    if listed is None:
        walked = (path for path in ROOT.rglob("*") if path.is_file())
        return tuple(path for path in walked if LEFT_BEHIND.isdisjoint(path.relative_to(ROOT).parts))
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(path for path in paths if path.is_file())


def python_files(*folders: str) -> list[Path]:
    """Python files in these folders; all code folders by default."""
    wanted = folders or CODE
    return [path for path in files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in wanted]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def earlier(*paths: str) -> list[tuple[str, ...]]:
    """Texts of these files in every commit that changed one and had all of them, newest first."""
    commits = git("log", "-n", "200", "--format=%H", "--", *paths) or ""
    states = [[git("show", f"{commit}:{path}") for path in paths] for commit in commits.split()]
    return [tuple(text for text in state if text is not None) for state in states if None not in state]
