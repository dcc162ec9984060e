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

# --- Gateway connection: session, events from apps, speech to apps ---

CONNECTION_OPEN: tuple[str, JsonObject] = ("connection", {"state": "open"})


@asynccontextmanager
async def open_connection(url: str, key: str, user: str) -> AsyncGenerator["GatewayConnection"]:
    """Yield the connection of a user, open until the block ends."""
    async with gateway_client(url, key) as client:
        yield GatewayConnection(client, url, user)


class GatewayConnection(RemoteBackend):
    """Device side of the REST API, for one user."""

    def __init__(self, client: Client, url: str, user: str) -> None:
        super().__init__(client, url)
        self._path = f"/api/users/{quote(user, safe='')}"

    async def start_session(self, device: str, language: str | None) -> JsonObject:
        """Start the user's session with this device, or replace its device."""
        body = {"device": device, **({} if language is None else {"language": language})}
        return await self._ask("PUT", f"{self._path}/session", body=body)

    async def end_session(self) -> None:
        """End the session; a session that has ended already is not an error."""
        try:
            await self._ask("DELETE", f"{self._path}/session")
        except Refused as error:
            if error.problem.code not in ("NOT_FOUND", "NO_SESSION"):
                raise

    async def send_speech(self, text: str, language: str | None) -> None:
        """Send a final transcription of the user's speech."""
        body = {"text": text, "isFinal": True, **({} if language is None else {"language": language})}
        await self._ask("POST", f"{self._path}/transcription", body=body)

    async def events(self) -> AsyncGenerator[tuple[str, JsonObject]]:
        """Yield the display and speech events of apps, after one event for the open connection.

        Never returns normally: raises Lost when the connection breaks.
        """
        headers = {"Accept": "text/event-stream"}
        async with self._sent("GET", f"{self._path}/events", headers=headers) as response:
            if response.status >= 400:
                raise refused_error((await self._read(response))["error"])
            yield CONNECTION_OPEN
            async with aclosing(read_events(response)) as events:
                async for event in events:
                    yield event
        raise Lost("OUTCOME_UNKNOWN", "the gateway closed the connection")


# --- Keyboard input: lines of a pipe or file, or single keys of a terminal without echo ---

_CHUNK_BYTES = 4096
_MAX_LINE_CHARS = 4000
"""Longer lines are truncated: a line stands for one utterance."""
_ENTER, _ERASE, _KILL, _END, _ESCAPE = "\r\n", "\x7f\x08", "\x15", "\x04", "\x1b"


class LineEditor:
    """Turns keys into lines; ignores other control characters and escape sequences."""

    def __init__(self) -> None:
        self.text = ""
        """The line typed so far."""
        self.ended = False
        self._decode = getincrementaldecoder("utf-8")(errors="replace")
        self._escape = ""

    def feed(self, keys: bytes) -> list[str]:
        """Process input bytes and return the completed lines; empty bytes mean the end of the input."""
        lines: list[str] = []
        for key in self._decode.decode(keys, final=not keys):
            if self._in_escape_sequence(key):
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

    def _in_escape_sequence(self, key: str) -> bool:
        """Whether the key belongs to an escape sequence, which ends with a letter or a tilde."""
        if not self._escape:
            self._escape = key if key == _ESCAPE else ""
            return bool(self._escape)
        opens = self._escape == _ESCAPE and key in "[O"
        self._escape = self._escape + key if opens or not (key.isalpha() or key == "~") else ""
        return True


async def read_input() -> AsyncGenerator[bytes]:
    """Yield stdin in chunks until its end, without a thread, which could not be cancelled."""
    can_block = _can_block(0)
    while True:
        if can_block:
            await anyio.wait_readable(0)
        else:
            await anyio.lowlevel.checkpoint()
        chunk = os.read(0, _CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def _can_block(descriptor: int) -> bool:
    """Whether reads can block: pipes, sockets and terminals do, files and /dev/null do not."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


@contextmanager
def without_echo() -> Generator[None]:
    """Switch the terminal to single keys without echo until the block ends; Ctrl-C still interrupts."""
    import termios
    import tty

    saved = termios.tcgetattr(sys.stdin.fileno())
    tty.setcbreak(sys.stdin.fileno())
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, saved)


# --- Simulation: concurrent tasks for events, speech, expiring views, input and signals ---

_MIN_RECONNECT_SECONDS, _MAX_RECONNECT_SECONDS = 0.5, 10.0
_END_SESSION_SECONDS = 5.0
"""Timeout of the last request, so that the command exits even if the gateway does not respond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Device model, user and speech settings."""

    model: str
    user: str
    language: str | None = None
    voice: bool = True
    stay: float = 0.0
    """Seconds to continue after the end of the input."""


async def simulate(connection: GatewayConnection, options: SimulationOptions, renderer: Renderer) -> None:
    """Run the simulation until the input ends or a signal arrives, then end the session."""
    session = await connection.start_session(options.model, options.language)
    try:
        device = _session_device(session, options.model)
        glasses = Glasses(device, options.user, device_screen(device.capabilities))
        renderer.show_start(glasses, session)
        with SpeechQueue(find_speech_program() if options.voice else None, options.language or "") as speech:
            await _Simulation(connection, options, renderer, glasses, speech).run()
    finally:
        with anyio.move_on_after(_END_SESSION_SECONDS, shield=True), suppress(ToolcribError):
            await connection.end_session()


def _session_device(session: JsonObject, model: str) -> Device:
    """Return the device that the gateway stored in the session."""
    return parse_device(object_or_empty(session.get("device")) or model)


class _Simulation:
    """Runs the tasks of one simulation."""

    def __init__(
        self,
        connection: GatewayConnection,
        options: SimulationOptions,
        renderer: Renderer,
        glasses: Glasses,
        speech: SpeechQueue,
    ) -> None:
        self._connection, self._options, self._renderer = connection, options, renderer
        self._glasses, self._speech = glasses, speech
        self._changed = anyio.Event()

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            for work in (self._speech.run, self._expire_views, self._receive_events):
                tasks.start_soon(work)
            tasks.start_soon(self._cancel_on_signal, tasks)
            await self._send_input()
            await anyio.sleep(self._options.stay)
            tasks.cancel_scope.cancel()

    def _handle_event(self, kind: str, data: JsonObject) -> None:
        lines = self._glasses.apply_event(kind, data, anyio.current_time())
        self._renderer.show_event(kind, data, lines)
        if kind == "speak":
            self._speak(data)
        self._changed.set()

    def _speak(self, data: JsonObject) -> None:
        if data.get("stop"):
            self._speech.stop()
        self._speech.say(str(data.get("text", "")))

    async def _cancel_on_signal(self, tasks: TaskGroup) -> None:
        with anyio.open_signal_receiver(SIGINT, SIGTERM, SIGHUP) as signals:
            async for _ in signals:
                tasks.cancel_scope.cancel()

    async def _receive_events(self) -> None:
        """Handle events; reconnect with exponential backoff, without a limit of attempts."""
        delay, reported = _MIN_RECONNECT_SECONDS, ""
        while True:
            try:
                async with aclosing(self._connection.events()) as events:
                    async for kind, data in events:
                        delay, reported = _MIN_RECONNECT_SECONDS, ""
                        self._handle_event(kind, data)
            except ToolcribError as error:
                reported = self._report_lost_connection(error, reported)
            await anyio.sleep(delay)
            delay = min(delay * 2, _MAX_RECONNECT_SECONDS)
            # A restarted gateway may have lost the session. If this request fails, so does the next
            # event stream, which reports the error.
            with suppress(ToolcribError):
                await self._connection.start_session(self._options.model, self._options.language)

    def _report_lost_connection(self, error: ToolcribError, reported: str) -> str:
        """Report an error unless it is the same as before; raise it if a retry cannot help."""
        problem = error.problem
        if isinstance(error, Refused) and not problem.retryable:
            raise error
        if problem.message != reported:
            self._handle_event("connection", {"state": "lost", "message": problem.message})
        return problem.message

    async def _expire_views(self) -> None:
        """Clear views when their display time is over."""
        while True:
            expiry = self._glasses.next_expiry()
            remaining = None if expiry is None else max(expiry - anyio.current_time(), 0)
            with anyio.move_on_after(remaining):
                await self._changed.wait()
            self._changed = anyio.Event()
            for view in self._glasses.expired_views(anyio.current_time()):
                self._handle_event("display", {"view": view, "layout": {"layoutType": "clear_view"}})

    async def _send_input(self) -> None:
        """Send every typed line as speech, until the input ends."""
        editor = LineEditor()
        async with aclosing(read_input()) as chunks:
            async for chunk in chunks:
                for line in editor.feed(chunk):
                    await self._send_line(line)
                self._renderer.show_input(editor.text)
                if editor.ended:
                    return
        for line in editor.feed(b""):
            await self._send_line(line)

    async def _send_line(self, text: str) -> None:
        self._handle_event("heard", {"text": text})
        try:
            await self._connection.send_speech(text, self._options.language)
        except ToolcribError as error:
            self._handle_event("connection", {"state": "not heard", "message": error.problem.message})
