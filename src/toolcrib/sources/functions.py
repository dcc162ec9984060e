"""In-process Python functions as tools: async ones on the event loop, sync ones in worker threads."""

import importlib
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import anyio

from toolcrib.errors import ToolcribError
from toolcrib.interfaces import Handler, Offer, Outcome, SourceLink
from toolcrib.model import Call, Family, Result, Tool
from toolcrib.names import snake_case
from toolcrib.sdk import AnyTool, FunctionTool, Registry, ToolContext
from toolcrib.sdk.checks import unknown_replacements
from toolcrib.sdk.handler_results import error_violation, handler_error, result_of
from toolcrib.sdk.threads import MAX_THREADS, Threads, is_own_cancellation, warn_if_blocking
from toolcrib.slots import DEFAULT_SHARE

_CLOSE_TIMEOUT_SECONDS = 5.0
"""For the close callback of a source."""


class ModuleProblem(ValueError):
    """A module named in the config cannot be imported or has no tools; the message states the fix."""


class Functions:
    """A source of in-process functions: it cannot die during a call."""

    mortal = False
    timeout = None

    def __init__(
        self,
        id: str,
        tools: Iterable[AnyTool],
        *,
        family: Family = "function",
        close: Callable[[], Awaitable[None]] | None = None,
        share: float = DEFAULT_SHARE,
    ) -> None:
        self._id, self._close = id, close
        self.family: Family = family
        threads = Threads(MAX_THREADS, share)
        self._offer: list[Tool] = []
        self._runs: dict[str, Handler] = {}
        for each in tools:
            bound = each.bind(id, family)
            if bound.name in self._runs:
                raise ModuleProblem(f"{id} has two tools named {each.name}: rename one of them")
            self._offer.append(bound)
            self._runs[bound.name] = _runner(each, threads)
        for finding in unknown_replacements(self._offer):
            raise ModuleProblem(f"{id}: {finding.message}")

    @property
    def id(self) -> str:
        """Return the source id, the namespace of its tools' names."""
        return self._id

    async def run(self, link: SourceLink) -> None:
        """Publish the tools, then wait until cancelled and run the close callback."""
        link.up(Offer(tools=self._offer))
        try:
            await anyio.sleep_forever()
        finally:
            if self._close is not None:
                with anyio.move_on_after(_CLOSE_TIMEOUT_SECONDS, shield=True):
                    await self._close()

    def call(self, call: Call) -> Outcome:
        """Start the function of a tool; return its awaitable."""
        return self._runs[call.tool.name](call)

    async def check(self) -> None:
        """Do nothing: functions live as long as the process."""

    def details(self) -> Mapping[str, Any]:
        """Return no details."""
        return {}


def _runner(tool: AnyTool, threads: Threads) -> Handler:
    convert, context = tool.signature.convert, tool.signature.context
    function, is_async = tool.function, tool.is_async

    async def run(call: Call) -> Result:
        try:
            arguments = convert(call.arguments)
            if context is not None:
                arguments[context] = ToolContext.of(call)
            if is_async:
                return result_of(await warn_if_blocking(function(**arguments), call.tool.name))
            return result_of(await threads.run(call.caller.principal, function, **arguments))
        except ToolcribError as error:
            violation = error_violation(error)
            if violation is not None:
                raise violation from error
            raise
        except BaseException as error:  # the boundary to third-party code: it must not end the process
            if is_own_cancellation(error):
                raise
            raise handler_error(error, call.tool) from error

    return run


def source_id(path: str) -> str:
    """Return the source id of a module: the last part of its dotted path in snake_case."""
    return snake_case(path.rpartition(".")[2])


def load_module(path: str, *, folder: Path | None = None) -> tuple[AnyTool, ...]:
    """Import a module and return its tools: those at the top level and those in its registries.

    `folder` is searched last, after all installed packages.
    """
    tools = tuple(dict.fromkeys(_tools_in(imported(path, folder=folder))))
    if not tools:
        advice = "put @tool before a function of it, or fill a Registry"
        raise ModuleProblem(f"the module {path} has no tools: {advice}")
    return tools


def imported(path: str, *, folder: Path | None = None) -> ModuleType:
    """Import a module, with `folder` appended to the search path; raise ModuleProblem on failure."""
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    if not all(part.isidentifier() for part in path.split(".")):
        raise ModuleProblem(f"{path!r} is no module: write its dotted name, such as my_package.tools")
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is not None and (path == error.name or path.startswith(f"{error.name}.")):
            advice = f"there is no module {error.name}: install it, or start where it can be imported"
            raise ModuleProblem(f"{path}: {advice}") from error
        raise ModuleProblem(f"the module {path} needs {error.name}, which is not installed") from error
    except (Exception, SystemExit) as error:  # the module is third-party code and may raise anything
        raise ModuleProblem(f"the module {path} does not import: {type(error).__name__}: {error}") from error


def _tools_in(module: ModuleType) -> Iterator[AnyTool]:
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        if isinstance(value, FunctionTool):
            yield cast("AnyTool", value)
        elif isinstance(value, Registry):
            yield from value.get_all()
