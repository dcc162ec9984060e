"""Python functions in this process: async ones on the event loop, the others in threads."""

import asyncio
import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, cast

import anyio
from anyio import to_thread

from toolcrib.errors import ToolcribError
from toolcrib.interfaces import Handler, Link, Offer, Outcome
from toolcrib.model import Call, Family, Result, Tool
from toolcrib.names import snake
from toolcrib.sdk import AnyTool, FunctionTool, Registry, ToolContext
from toolcrib.sdk.checks import unknown_replacements
from toolcrib.sdk.outcome import failure, result_of, unfit

MOST_THREADS = 64
_CLOSING_SECONDS = 5.0


Run = Handler


class ModuleProblem(ValueError):
    """A module named in the config gives no tools; the message says what to do."""


class Functions:
    """A source whose tools are functions of this process, so it cannot die under a running call."""

    mortal = False
    timeout = None

    def __init__(
        self,
        id: str,
        tools: Iterable[AnyTool],
        *,
        family: Family = "function",
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._id, self._close = id, close
        self.family: Family = family
        threads = _Threads(MOST_THREADS)
        self._offer: list[Tool] = []
        self._runs: dict[str, Run] = {}
        for each in tools:
            offered = each.bind(id, family)
            if offered.name in self._runs:
                raise ModuleProblem(f"{id} has two tools named {each.name}: rename one of them")
            self._offer.append(offered)
            self._runs[offered.name] = _runner(each, threads)
        for finding in unknown_replacements(self._offer):
            raise ModuleProblem(f"{id}: {finding.message}")

    @property
    def id(self) -> str:
        """The first half of its tools' names."""
        return self._id

    async def run(self, link: Link) -> None:
        """Offer the tools, then wait to be cancelled and let go of what they hold."""
        link.up(Offer(tools=self._offer))
        try:
            await anyio.sleep_forever()
        finally:
            if self._close is not None:
                with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
                    await self._close()

    def call(self, call: Call) -> Outcome:
        """Call the function."""
        return self._runs[call.tool.name](call)

    async def check(self) -> None:
        """Functions are there as long as this process is."""

    def details(self) -> Mapping[str, Any]:
        """There is nothing more to say of a function."""
        return {}


def _runner(tool: AnyTool, threads: "_Threads") -> Run:
    convert, context = tool.signature.convert, tool.signature.context
    start = tool.function if tool.is_async else partial(threads.run, tool.function)

    async def run(call: Call) -> Result:
        try:
            arguments = convert(call.arguments)
            if context is not None:
                arguments[context] = ToolContext.of(call)
            return result_of(await start(**arguments))
        except ToolcribError as error:
            broken = unfit(error)
            if broken is not None:
                raise broken from error
            raise
        except BaseException as error:  # the boundary to code that is not ours; it must not end us
            if _is_our_end(error):
                raise
            raise failure(error, call.tool) from error

    return run


def _is_our_end(error: BaseException) -> bool:
    """Whether we are the ones being ended. A function that awaits a cancelled task of its own is not."""
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, GeneratorExit)
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class _Threads:
    """A bounded number of threads. One keeps its place until its work ends, also when nobody waits any more.

    anyio's own limiter gives the place of an abandoned thread away at once, so that a function that hangs
    would pile up threads without end.
    """

    def __init__(self, most: int) -> None:
        self._places = anyio.Semaphore(most, fast_acquire=True)
        self._unlimited = anyio.CapacityLimiter(inf)

    async def run(self, function: Callable[..., Any], /, **arguments: Any) -> Any:
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        begun = Lock()

        def work() -> Any:
            if not begun.acquire(blocking=False):
                return None
            try:
                return function(**arguments)
            except Exception:
                raise
            except BaseException as error:  # what ends a thread or a generator must not end ours
                raise RuntimeError(f"the function raised {type(error).__name__}") from error
            finally:
                # anyio's way back would have the thread wait for the loop. A closed loop needs no telling.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._places.release)

        try:
            outcome = await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._unlimited)
        except BaseException:
            if begun.acquire(blocking=False):
                self._places.release()
            raise
        return await outcome if inspect.isawaitable(outcome) else outcome


def source_id(path: str) -> str:
    """Return the id of a module's source: the last part of its path, in lower snake case."""
    return snake(path.rpartition(".")[2])


def load_module(path: str, *, folder: Path | None = None) -> tuple[AnyTool, ...]:
    """Import a module and collect its tools: those at its top level, and those of its registries.

    `folder` is where modules are looked for last, after everything installed.
    """
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    tools = tuple(dict.fromkeys(_tools_in(_imported(path))))
    if not tools:
        raise ModuleProblem(
            f"the module {path} has no tools: put @tool before a function of it, or fill a Registry"
        )
    return tools


def _imported(path: str) -> ModuleType:
    if not all(part.isidentifier() for part in path.split(".")):
        raise ModuleProblem(f"{path!r} is no module: write its dotted name, such as my_package.tools")
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is not None and (path == error.name or path.startswith(f"{error.name}.")):
            said = f"there is no module {error.name}: install it, or start where it can be imported"
            raise ModuleProblem(f"{path}: {said}") from error
        raise ModuleProblem(f"the module {path} needs {error.name}, which is not installed") from error
    except (Exception, SystemExit) as error:  # a module is code that is not ours, and may raise anything
        raise ModuleProblem(f"the module {path} does not import: {type(error).__name__}: {error}") from error


def _tools_in(module: ModuleType) -> Iterator[AnyTool]:
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        if isinstance(value, FunctionTool):
            yield cast("AnyTool", value)
        elif isinstance(value, Registry):
            yield from value.get_all()
