"""Runs simulated glasses: gateway connection, keyboard input and event loop."""

import os
import stat
import sys
from codecs import getincrementaldecoder
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from signal import SIGHUP, SIGINT, SIGTERM
from urllib.parse import quote

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from toolcrib.apps.hardware import parse_device
from toolcrib.cli.glasses.glasses import Glasses, device_screen, object_or_empty
from toolcrib.cli.glasses.renderers import Renderer, SpeechQueue, find_speech_program
from toolcrib.cli.remote_backend import RemoteBackend, gateway_client, read_events, refused_error
from toolcrib.egress.client import Client
from toolcrib.errors import Lost, Refused, ToolcribError
from toolcrib.model import Device, JsonObject

# --- The line between a pair of glasses and its gateway: the session, what comes out, what goes in ---

CONNECTION_OPEN: tuple[str, JsonObject] = ("connection", {"state": "open"})


@asynccontextmanager
async def open_connection(url: str, key: str, user: str) -> AsyncGenerator["GatewayConnection"]:
    """Open the line of a user for as long as the block lasts."""
    async with gateway_client(url, key) as client:
        yield GatewayConnection(client, url, user)


class GatewayConnection(RemoteBackend):
    """Speaks for the device of one user."""

    def __init__(self, client: Client, url: str, user: str) -> None:
        super().__init__(client, url)
        self._path = f"/api/users/{quote(user, safe='')}"

    async def begin(self, device: str, language: str | None) -> JsonObject:
        """Begin the user's session with this device, or change it."""
        body = {"device": device, **({} if language is None else {"language": language})}
        return await self._ask("PUT", f"{self._path}/session", body=body)

    async def end(self) -> None:
        """End the session; one that is over already is none of our business."""
        try:
            await self._ask("DELETE", f"{self._path}/session")
        except Refused as error:
            if error.problem.code not in ("NOT_FOUND", "NO_SESSION"):
                raise

    async def hear(self, text: str, language: str | None) -> None:
        """Pass on what the user has said."""
        body = {"text": text, "isFinal": True, **({} if language is None else {"language": language})}
        await self._ask("POST", f"{self._path}/transcription", body=body)

    async def events(self) -> AsyncGenerator[tuple[str, JsonObject]]:
        """Follow what apps show and say, from when the line is open on.

        Raises Lost when it breaks; it has no other end.
        """
        headers = {"Accept": "text/event-stream"}
        async with self._sent("GET", f"{self._path}/events", headers=headers) as response:
            if response.status >= 400:
                raise refused_error((await self._read(response))["error"])
            yield CONNECTION_OPEN
            async with aclosing(read_events(response)) as events:
                async for event in events:
                    yield event
        raise Lost("OUTCOME_UNKNOWN", "the gateway has ended the line")


# --- What is typed: lines out of a pipe or a file, or key by key out of a terminal that must not echo ---

_CHUNK_BYTES = 4096
_MAX_LINE_CHARS = 4000
"""A line is cut there: nobody says more in one breath."""
_ENTER, _ERASE, _KILL, _END, _ESCAPE = "\r\n", "\x7f\x08", "\x15", "\x04", "\x1b"


class LineEditor:
    """Keys become lines. Other control characters, and whole escape sequences, are not text."""

    def __init__(self) -> None:
        self.text = ""
        """The line as far as it has been typed."""
        self.ended = False
        self._decode = getincrementaldecoder("utf-8")(errors="replace")
        self._escape = ""

    def feed(self, keys: bytes) -> list[str]:
        """Take in some bytes; return the lines they finish. None at all are the end."""
        lines: list[str] = []
        for key in self._decode.decode(keys, final=not keys):
            if self._escaped(key):
                continue
            if key in _ENTER:
                lines.append(self._finish())
            elif key == _END and not self.text:
                self.ended = True
            else:
                self._edit(key)
        if not keys:
            self.ended = True
            lines.append(self._finish())
        return [line for line in lines if line]

    def _finish(self) -> str:
        line, self.text = self.text.strip(), ""
        return line

    def _edit(self, key: str) -> None:
        if key in _ERASE:
            self.text = self.text[:-1]
        elif key == _KILL:
            self.text = ""
        elif (key.isprintable() or key == "\t") and len(self.text) < _MAX_LINE_CHARS:
            self.text += " " if key == "\t" else key

    def _escaped(self, key: str) -> bool:
        """Follow an escape sequence to its end: a letter or a tilde, after the bracket that opens it."""
        if not self._escape:
            self._escape = key if key == _ESCAPE else ""
            return bool(self._escape)
        opens = self._escape == _ESCAPE and key in "[O"
        self._escape = self._escape + key if opens or not (key.isalpha() or key == "~") else ""
        return True


async def read_input() -> AsyncGenerator[bytes]:
    """Read our standard input as it comes, without a thread that would outlive us; ends where it ends."""
    waits = _may_block(0)
    while True:
        if waits:
            await anyio.wait_readable(0)
        else:
            await anyio.lowlevel.checkpoint()
        piece = os.read(0, _CHUNK_BYTES)
        if not piece:
            return
        yield piece


def _may_block(descriptor: int) -> bool:
    """Whether reading can wait at all: a file never does, and /dev/null neither."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


@contextmanager
def without_echo() -> Generator[None]:
    """Have the terminal hand over each key and draw none of them; Ctrl-C still interrupts."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin.fileno())
    tty.setcbreak(sys.stdin.fileno())
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


# --- Wears a pair of glasses: follows what apps show and say, passes on what is typed, ends with its session
# ---

_MIN_RECONNECT_SECONDS, _MAX_RECONNECT_SECONDS = 0.5, 10.0
_END_SESSION_SECONDS = 5.0
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
        worn = _session_device(session, wish.model)
        glasses = Glasses(worn, wish.user, device_screen(worn.capabilities))
        show.began(glasses, session)
        with SpeechQueue(find_speech_program() if wish.voice else None, wish.language or "") as mouth:
            await _Simulation(line, wish, show, glasses, mouth).run()
    finally:
        with anyio.move_on_after(_END_SESSION_SECONDS, shield=True), suppress(ToolcribError):
            await line.end()


def _session_device(session: JsonObject, model: str) -> Device:
    """Return the device the gateway took it for."""
    return parse_device(object_or_empty(session.get("device")) or model)


class _Simulation:
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
        wait, told = _MIN_RECONNECT_SECONDS, ""
        while True:
            try:
                async with aclosing(self._line.events()) as events:
                    async for kind, data in events:
                        wait, told = _MIN_RECONNECT_SECONDS, ""
                        self._happen(kind, data)
            except ToolcribError as error:
                told = self._lost(error, told)
            await anyio.sleep(wait)
            wait = min(wait * 2, _MAX_RECONNECT_SECONDS)
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
        typed = LineEditor()
        async with aclosing(read_input()) as pieces:
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
