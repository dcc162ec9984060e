"""Our Markdown pages as the gates read them: sections, fences, links and anchors."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^```(\S*)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)[^)]*\)")
_CODE = re.compile(r"`+[^`\n]+`+")


@dataclass(frozen=True)
class Fence:
    """One fenced block. `mark` is the text after its language."""

    language: str
    mark: str
    code: str
    line: int

    @property
    def file(self) -> str | None:
        """The file name a reader should use: a first line such as `# my_tools.py`."""
        found = re.match(r"# (\w+\.(?:py|yaml))\n", self.code)
        return found[1] if found else None


def pages() -> list[Path]:
    """Every page a reader may meet, the README first."""
    return [README, *sorted(DOCS.rglob("*.md"))]


@cache
def text_of(name: str) -> str:
    """Return the text of a page by its path from the root of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    """Return how a page is called in a complaint."""
    return path.relative_to(ROOT).as_posix()


def fences(text: str, language: str | None = None) -> list[Fence]:
    """Return the fenced blocks of a text, of one language or of all."""
    found = [
        Fence(each[1], each[2].strip(), each[3], text.count("\n", 0, each.start()) + 1)
        for each in _FENCE.finditer(text)
    ]
    return [fence for fence in found if language in (None, fence.language)]


def prose(text: str) -> str:
    """Return a text without its fenced blocks."""
    return _FENCE.sub("", text)


def headings(text: str) -> list[str]:
    """Return the headings of a text."""
    return [each[2] for each in _HEADING.finditer(prose(text))]


def section(text: str, heading: str) -> str | None:
    """Return what stands under a heading, smaller headings included; None where there is none."""
    lines = text.splitlines(keepends=True)
    fenced, level, kept = False, 0, list[str]()
    for line in lines:
        fenced ^= line.startswith("```")
        found = None if fenced else _HEADING.match(line)
        if found is not None and level and len(found[1]) <= level:
            break
        if level:
            kept.append(line)
        elif found is not None and found[2] == heading:
            level = len(found[1])
    return "".join(kept) if level else None


def anchors(text: str) -> set[str]:
    """Return the anchors of a text, made of its headings as Git hosts make them."""
    seen: Counter[str] = Counter()
    found: set[str] = set()
    for heading in headings(text):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def links(text: str) -> Iterator[str]:
    """Give every target of a link or a picture, but nothing from code."""
    for each in _LINK.finditer(_CODE.sub("", prose(text))):
        yield each[1]


def broken_links(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead nowhere. Addresses of other sites are not followed."""
    found: list[str] = []
    for target in links(text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        other = (page.parent / file).resolve() if file else page
        if file and not other.exists():
            found.append(f"{target}: there is no such file")
        elif anchor and anchor not in anchors(text if other == page else other.read_text(encoding="utf-8")):
            found.append(f"{target}: there is no such heading")
    return found


def linked(page: Path) -> set[Path]:
    """Return the files a page links to."""
    targets = (target.partition("#")[0] for target in links(page.read_text(encoding="utf-8")))
    return {(page.parent / target).resolve() for target in targets if target and ":" not in target}


def unmentioned(text: str, words: Iterator[str] | list[str] | tuple[str, ...]) -> list[str]:
    """Return the words that a text does not set in code, alone or as part of it."""
    code = " ".join([*_CODE.findall(text), *(fence.code for fence in fences(text))])
    return [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", code)]
