"""How far a call is, drawn in a terminal while it runs and gone when it ends."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from toolcrib.cli.output import console, plain
from toolcrib.model import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


class ProgressBar:
    """Appears with the first thing a call reports, on standard error, and only where somebody looks at it."""

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
        """Draw one report."""
        if not sys.stderr.isatty():
            return
        bar, task = self._drawn()
        message = plain(progress.message or "")
        bar.update(task, completed=progress.done, total=progress.total, description=message or None)

    def _drawn(self) -> "tuple[Bar, TaskID]":
        if self._bar is None or self._task is None:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

            columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}", markup=False))
            self._bar = Progress(*columns, console=console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        return self._bar, self._task
