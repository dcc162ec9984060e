"""The tables in our pages that the code itself can write, each between two marks that name it."""

import re
from collections.abc import Callable, Iterable, Iterator

from tests.docs import inventory, limits
from tests.docs.pages import DOCS
from toolcrib.config import Setting, settings
from toolcrib.config.sections import UNIMPLEMENTED
from toolcrib.errors import ADVICE, CODES, EXCEPTIONAL_ADVICE, Advice
from toolcrib.http import Route
from toolcrib.sdk.checklist import ITEMS

_BLOCK = re.compile(r"(<!-- generated: ([\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_WHO = {"open": "anyone", "loopback": "this machine, else a key", "key": "a key", "app": "an app's key"}
LATER_MARK = " *(checked, not served yet)*"


def fill(text: str) -> str:
    """Return a page with its tables as they are now."""
    return _BLOCK.sub(lambda found: found[1] + written(found[2]) + found[3], text)


def written(name: str) -> str:
    """Return one table; a command has one of its own, such as `command keys create`."""
    if name.startswith("command "):
        return _command(name.removeprefix("command "))
    return TABLES[name]()


def table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Write a Markdown table."""
    head = [columns, tuple("---" for _ in columns)]
    lines = ["| " + " | ".join(_cell(each) for each in row) + " |\n" for row in (*head, *rows)]
    return "\n" + "".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _settings() -> str:
    rows = ((f"`{each.path}`", each.type, f"`{each.default}`", _meaning(each)) for each in settings())
    return table(("setting", "type", "default", "meaning"), rows)


def _meaning(setting: Setting) -> str:
    text = setting.meaning.replace("<", "&lt;")
    return text + LATER_MARK if is_later(setting.path) else text


def is_later(path: str) -> bool:
    """Whether this version checks a setting but does not serve it."""
    parts = path.replace("[]", "").split(".")
    return any(
        len(parts) >= len(pattern) and all(a in ("*", b) for a, b in zip(pattern, parts, strict=False))
        for pattern in UNIMPLEMENTED
    )


def _routes() -> str:
    rows = ((f"`{each.method} {each.path}`", _who(each), each.summary) for each in inventory.found().routes)
    return table(("route", "who", "what"), rows)


def _who(route: Route) -> str:
    return f"`{route.needs}`" if route.needs else _WHO[route.access]


def _codes() -> str:
    rows = (
        (
            f"[`{code}`](#{code.lower()})",
            str(row.status),
            row.kind,
            row.error_class,
            "yes" if row.retryable else "no",
            "protocol error" if row.mcp == "error" else "result",
        )
        for code, row in CODES.items()
    )
    return table(("code", "status", "kind", "class", "retryable", "on MCP"), rows)


_WHEN = {
    "never": "no",
    "corrected": "only corrected",
    "checked": "only after a check",
    "later": "yes, later",
    "after_wait": "yes, after `retryAfter`",
    "once": "yes, once",
}


def _advice() -> str:
    rows = (
        (f"[`{code}`](#{code.lower()})", state, f"`{each.action}`", _WHEN[each.retry], each.happened)
        for code in ADVICE
        for state, each in _advice_of(code)
    )
    return table(("code", "retryable", "first action", "make the same call", "has it taken effect"), rows)


def _advice_of(code: str) -> Iterator[tuple[str, Advice]]:
    retryable = CODES[code].retryable
    yield "yes" if retryable else "no", ADVICE[code]
    if code in EXCEPTIONAL_ADVICE:
        yield "no" if retryable else "yes", EXCEPTIONAL_ADVICE[code]


def advice_text(code: str) -> str:
    """Return what the section of a code says to do."""
    (_, advice), *other = _advice_of(code)
    sentences = [f"**Do:** {advice.text}"]
    sentences += [
        f"If `retryable` is {'true' if state == 'yes' else 'false'}: {each.text}" for state, each in other
    ]
    if advice.check:
        sentences.append(f"If the tool changes something: {advice.check}")
    return " ".join(sentences)


def _command(path: str) -> str:
    command = next(each for each in inventory.commands() if each.path == f"toolcrib {path}")
    usage = f"\n```text\n{' '.join(command.usage.split())}\n```\n"
    if not command.options:
        return usage + "\n"
    return usage + table(("option", "meaning"), ((f"`{names}`", said) for names, said in command.options))


def _limits() -> str:
    return table(("what", "limit", "where it is set"), limits.rows())


def _checklist() -> str:
    rows = ((f"`{each.id}`", each.requirement, each.fix) for each in ITEMS)
    return table(("item", "requirement", "fix"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "settings": _settings,
    "routes": _routes,
    "codes": _codes,
    "advice": _advice,
    "limits": _limits,
    "checklist": _checklist,
}


def stale() -> Iterator[str]:
    """Return the pages with outdated tables."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if fill(text) != text:
            yield page.name
