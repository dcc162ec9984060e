"""How well a provider can be told of the tools: what of their schemas it is not told, which it never sees."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import click

from toolcrib.cli.backend import Backend, with_backend
from toolcrib.cli.config_document import IN_MEMORY
from toolcrib.cli.output import Row, say, show_json, show_table
from toolcrib.cli.target import CallerView, Target
from toolcrib.cli.tool_parsing import tool_of
from toolcrib.formats import PROVIDERS
from toolcrib.interfaces import Loss
from toolcrib.model import JsonObject

_COLUMNS = ("", "Where", "What is not said")


@dataclass(frozen=True, kw_only=True)
class FormatReport:
    """One tool, as a provider hears of it."""

    name: str
    losses: tuple[Loss, ...] = ()
    reason: str | None = None
    """Why it cannot be declared at all."""

    @property
    def exact(self) -> bool:
        """Whether the declaration accepts exactly what the tool accepts."""
        return self.reason is None and not self.losses

    def rows(self) -> Iterator[Row]:
        """Say it in lines: one for each thing that is lost."""
        if self.reason is not None:
            yield "withheld", self.name, self.reason
        elif not self.losses:
            yield "exact", self.name, ""
        for each in self.losses if self.reason is None else ():
            yield "lost", f"{self.name} {each.path} {each.keyword}", each.message

    def as_json(self) -> JsonObject:
        """Say it for a program."""
        said = {
            "declared": self.reason is None,
            "exact": self.exact,
            "losses": list(map(asdict, self.losses)),
        }
        return said if self.reason is None else {**said, "reason": self.reason}


def report(place: Target, module: str | None, format: str, *, as_json: bool) -> int:
    """Print how a provider is told of the tools of a place or a module; 1 where one cannot be declared."""
    if format not in PROVIDERS:
        raise click.UsageError(f"--format must be one of {', '.join(PROVIDERS)}")

    async def ask(desk: Backend) -> tuple[FormatReport, ...]:
        return await _asked(desk, format)

    found = with_backend(place, ask) if module is None else _of_module(module, format)
    if as_json:
        tools = {each.name: each.as_json() for each in found}
        ok = all(each.reason is None for each in found)
        show_json({"ok": ok, "format": format, "tools": tools})
    else:
        _show(found, format)
    return int(any(each.reason is not None for each in found))


async def _asked(desk: Backend, format: str, source: str | None = None) -> tuple[FormatReport, ...]:
    listing = await desk.listing(CallerView(), format=format)
    withheld = {each["name"]: each["reason"] for each in listing.get("withheld", ())}
    tools = [tool_of(each, "function") for each in await desk.tools(CallerView())]
    return tuple(
        FormatReport(name=each.name, losses=PROVIDERS[format].losses(each), reason=withheld.get(each.name))
        for each in tools
        if source in (None, each.source)
    )


def _of_module(named: str, format: str) -> tuple[FormatReport, ...]:
    """Serve a module in a gateway of its own, which tells what a provider would hear of it."""
    import anyio

    from toolcrib.cli.local_backend import LocalBackend
    from toolcrib.cli.log_silencing import quiet
    from toolcrib.config import default_document
    from toolcrib.crib import Crib
    from toolcrib.testing.modules import find_module

    document = replace(default_document({}), store=IN_MEMORY)

    async def run() -> tuple[FormatReport, ...]:
        async with Crib(document=replace(document, functions=(module.name,))) as crib:
            return await _asked(LocalBackend(crib), format, module.source)

    with quiet(document):
        module = find_module(named)
        return anyio.run(run)


def _show(found: Sequence[FormatReport], format: str) -> None:
    show_table(_COLUMNS, [row for each in found for row in each.rows()])
    exact = sum(each.exact for each in found)
    say(f"{format}: {exact} of {len(found)} tools are declared exactly as they are.")
    withheld = sum(each.reason is not None for each in found)
    if withheld:
        say(f"{withheld} cannot be declared at all.")
