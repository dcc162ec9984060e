"""Wears a pair of glasses: follows what apps show and say, passes on what is typed, ends with its session."""

from contextlib import aclosing, suppress
from dataclasses import dataclass
from signal import SIGHUP, SIGINT, SIGTERM

import anyio
from anyio.abc import TaskGroup

from toolcrib.apps.hardware import device
from toolcrib.cli.glasses.display import fields, screen_of
from toolcrib.cli.glasses.gateway_connection import GatewayConnection
from toolcrib.cli.glasses.glasses import Glasses
from toolcrib.cli.glasses.keyboard import Typed, keys
from toolcrib.cli.glasses.renderers import Renderer
from toolcrib.cli.glasses.speech import SpeechQueue, find_speech_program
from toolcrib.errors import Refused, ToolcribError
from toolcrib.model import Device, JsonObject

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
_GOODBYE = 5.0
"""How long the gateway may take to end a session that nobody waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Which glasses, and who wears them how."""

    model: str
    user: str
    language: str | None = None
    voice: bool = True
    stay: float = 0.0
    """How many seconds to go on after the end of the input."""


async def simulate(line: GatewayConnection, wish: SimulationOptions, show: Renderer) -> None:
    """Wear them until the input ends or somebody says stop."""
    session = await line.begin(wish.model, wish.language)
    try:
        worn = _device(session, wish.model)
        glasses = Glasses(worn, wish.user, screen_of(worn.capabilities))
        show.began(glasses, session)
        with SpeechQueue(find_speech_program() if wish.voice else None, wish.language or "") as mouth:
            await _Wearer(line, wish, show, glasses, mouth).run()
    finally:
        with anyio.move_on_after(_GOODBYE, shield=True), suppress(ToolcribError):
            await line.end()


def _device(session: JsonObject, model: str) -> Device:
    """Return the device the gateway took it for."""
    return device(fields(session.get("device")) or model)


class _Wearer:
    """Keeps everything going at once."""

    def __init__(
        self,
        line: GatewayConnection,
        wish: SimulationOptions,
        show: Renderer,
        glasses: Glasses,
        mouth: SpeechQueue,
    ) -> None:
        self._line, self._wish, self._show = line, wish, show
        self._glasses, self._mouth = glasses, mouth
        self._changed = anyio.Event()

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            for work in (self._mouth.run, self._fade, self._follow):
                tasks.start_soon(work)
            tasks.start_soon(self._obey, tasks)
            await self._listen()
            await anyio.sleep(self._wish.stay)
            tasks.cancel_scope.cancel()

    def _happen(self, kind: str, data: JsonObject) -> None:
        lines = self._glasses.take(kind, data, anyio.current_time())
        self._show.happened(kind, data, lines)
        if kind == "speak":
            self._speak(data)
        self._changed.set()

    def _speak(self, data: JsonObject) -> None:
        if data.get("stop"):
            self._mouth.hush()
        self._mouth.say(str(data.get("text", "")))

    async def _obey(self, tasks: TaskGroup) -> None:
        with anyio.open_signal_receiver(SIGINT, SIGTERM, SIGHUP) as signals:
            async for _ in signals:
                tasks.cancel_scope.cancel()

    async def _follow(self) -> None:
        """Follow the events; a line that breaks is opened again, however long that takes."""
        wait, told = _FIRST_WAIT, ""
        while True:
            try:
                async with aclosing(self._line.events()) as events:
                    async for kind, data in events:
                        wait, told = _FIRST_WAIT, ""
                        self._happen(kind, data)
            except ToolcribError as error:
                told = self._lost(error, told)
            await anyio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
            # A gateway that was started again may not know of us any more. Where it cannot be told, nor
            # can it be followed, which is then said above.
            with suppress(ToolcribError):
                await self._line.begin(self._wish.model, self._wish.language)

    def _lost(self, error: ToolcribError, told: str) -> str:
        """Say once why there is no line; what trying again cannot mend ends everything."""
        problem = error.problem
        if isinstance(error, Refused) and not problem.retryable:
            raise error
        if problem.message != told:
            self._happen("connection", {"state": "lost", "message": problem.message})
        return problem.message

    async def _fade(self) -> None:
        """Clear what was to be shown for a while."""
        while True:
            due = self._glasses.due()
            left = None if due is None else max(due - anyio.current_time(), 0)
            with anyio.move_on_after(left):
                await self._changed.wait()
            self._changed = anyio.Event()
            for view in self._glasses.faded(anyio.current_time()):
                self._happen("display", {"view": view, "layout": {"layoutType": "clear_view"}})

    async def _listen(self) -> None:
        """Pass on every line that is typed, until the input ends."""
        typed = Typed()
        async with aclosing(keys()) as pieces:
            async for piece in pieces:
                for line in typed.feed(piece):
                    await self._heard(line)
                self._show.typed(typed.text)
                if typed.ended:
                    return
        for line in typed.feed(b""):
            await self._heard(line)

    async def _heard(self, text: str) -> None:
        self._happen("heard", {"text": text})
        try:
            await self._line.hear(text, self._wish.language)
        except ToolcribError as error:
            self._happen("connection", {"state": "not heard", "message": error.problem.message})
