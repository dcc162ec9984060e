"""Output of commands: lines, tables, JSON and progress bars."""

import os
import sys
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from toolcrib.model import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

# --- Tables and colour in a terminal, tab-separated lines in a pipe, JSON for programs ---

Row = Sequence[str]


def show_json(value: Any) -> None:
    """Print one JSON document."""
    import orjson

    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS))


def print_line(text: str = "") -> None:
    """Print a line on standard output."""
    click.echo(strip_control(text))


def print_note(text: str) -> None:
    """Print a note on standard error, where programs that parse the output do not read it."""
    click.echo(strip_control(text), err=True)


def print_error(text: str) -> None:
    """Print an error on standard error."""
    for line in text.splitlines() or [""]:
        print_note(f"toolcrib: {line}")


def show_table(columns: Row, rows: Iterable[Row], *, title: str | None = None) -> None:
    """Print rows: as a table in a terminal, tab-separated in a pipe."""
    if not in_terminal():
        for row in rows:
            click.echo("\t".join(_cell_text(each) for each in row))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(*(Text(_cell_text(each)) for each in row))
    console().print(table)


def show_value(value: Any) -> None:
    """Print a JSON value: strings unquoted, anything else indented, and coloured in a terminal."""
    if isinstance(value, str):
        print_line(value)
    elif in_terminal():
        console().print_json(data=value, ensure_ascii=False)
    else:
        show_json(value)


def in_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def may_show_secrets() -> bool:
    """Whether standard output is seen but not stored: no pipe, no file, no CI log."""
    return in_terminal() and not os.environ.get("CI")


def console(*, stderr: bool = False) -> "Console":
    """Return a rich console."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def show_link(url: str) -> None:
    """Print a sign-in link; only for a terminal."""
    from rich.text import Text

    terminal = console()
    terminal.print(Text("Open this page; the link signs you in, once, within 10 minutes:", style="bold"))
    # Not wrapped, so that it can be clicked and copied.
    terminal.print(Text(url, style="cyan underline"), soft_wrap=True)


def strip_control(text: str) -> str:
    """Replace control characters except newline and tab: text from tools must not control the terminal."""
    return "".join(each if each.isprintable() or each in "\n\t" else "�" for each in text)


def _cell_text(text: str) -> str:
    return strip_control(" ".join(text.split()))


# --- Progress of a call, drawn in a terminal while it runs ---


class ProgressBar:
    """A progress bar on standard error, drawn from the first report on, and only in a terminal."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, progress: Progress) -> None:
        """Draw a report."""
        if not sys.stderr.isatty():
            return
        bar, task = self._started()
        message = strip_control(progress.message or "")
        bar.update(task, completed=progress.done, total=progress.total, description=message or None)

    def _started(self) -> "tuple[Bar, TaskID]":
        if self._bar is None or self._task is None:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

            columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}", markup=False))
            self._bar = Progress(*columns, console=console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        return self._bar, self._task
