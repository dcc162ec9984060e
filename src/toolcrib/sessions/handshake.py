"""Handshake of app connections: the first message names the session and authenticates the app."""

import logging
from collections.abc import Awaitable, Callable
from hmac import compare_digest

import anyio

from toolcrib.apps import messages
from toolcrib.apps.errors import InvalidMessage
from toolcrib.apps.parse import InitMessage, parse_app_message
from toolcrib.apps.signature import key_digest
from toolcrib.interfaces import AppRecord, UserRecord
from toolcrib.model import JsonObject
from toolcrib.sessions.app_start import connected_device, user_language
from toolcrib.sessions.app_state import AppSocket, AppStateMachine, AppStateTable, AppTimeouts, not_available
from toolcrib.slots import Slots

log = logging.getLogger(__name__)

_DUMMY_DIGEST = key_digest("")
"""Digest to compare with if the app does not exist, so that the check takes the same time."""
_NO_SETTINGS: JsonObject = {}
HandshakeRejected = Callable[[str], Awaitable[None]]
"""Callback with the package of an app that sent a wrong key, called before the app is notified."""
# WebSocket close codes: overload, and those for the error codes of the protocol.
_CLOSE_TRY_LATER = 1013
_CLOSE_CODES = {"INVALID_API_KEY": 1008, "APP_NOT_STARTED": 1008, "INTERNAL_ERROR": 1011}


class _HandshakeError(Exception):
    """A rejected handshake: with an error code of the protocol, or with a close code alone."""

    package = ""
    """The app with the wrong key, if that was the reason."""

    def __init__(self, message: str, code: str = "", close: int = 1008) -> None:
        super().__init__(message)
        self.code, self.close = code, _CLOSE_CODES.get(code, close)


class AppHandshake:
    """Authenticates an app by its API key and the session it names, which must be expecting it."""

    def __init__(
        self,
        settings: AppTimeouts,
        machines: AppStateTable,
        *,
        find: Callable[[str], AppRecord | None],
        user: Callable[[str], Awaitable[UserRecord | None]],
        clock: Callable[[], float],
    ) -> None:
        self._settings, self._machines, self._clock = settings, machines, clock
        self._find, self._user = find, user
        self._slots = Slots(settings.sockets, settings.share)
        self._owners: dict[AppSocket, str] = {}
        """Authenticated connections, each with the key that owns its app."""

    async def enter(
        self, socket: AppSocket, rejected: HandshakeRejected | None = None
    ) -> AppStateMachine | None:
        """Run the handshake and send the ack; on rejection, send the error, close, and return None."""
        # Unauthenticated connections are bounded by the frontend, which closes the oldest, so that idle
        # ones cannot lock apps out.
        try:
            return await self._authenticated(socket)
        except _HandshakeError as refused:
            if refused.package and rejected is not None:
                await rejected(refused.package)
            if refused.code:
                error = messages.connection_error(refused.code, str(refused), now=self._clock())
                await socket.send(messages.encode(error))
            await socket.close(refused.close, str(refused))
            return None

    def left(self, socket: AppSocket) -> None:
        """Release the slot of a connection that has ended, if it was authenticated."""
        owner = self._owners.pop(socket, None)
        if owner is not None:
            self._slots.release(owner)

    async def _authenticated(self, socket: AppSocket) -> AppStateMachine:
        init = await self._init_message(socket)
        machine = self._session(init)
        owner = self._verified_owner(init, machine)
        if machine is None or not machine.accepts_connection:
            raise _HandshakeError("no session of that name was requested", "APP_NOT_STARTED")
        self._count(socket, owner, machine)
        await socket.send(await self._ack(machine))
        if not machine.accepts_connection:
            raise _HandshakeError("the session ended during the handshake", "APP_NOT_STARTED")
        former = machine.arrive(socket)
        if former is not None:
            await former.close(1000, "replaced by a newer connection")
        return machine

    def _count(self, socket: AppSocket, owner: str, machine: AppStateMachine) -> None:
        """Take a connection slot of the key that owns the app; a replacement is always admitted."""
        if machine.socket is not None:
            self._slots.retake(owner)
        elif not self._slots.take(owner):
            raise _HandshakeError(
                "too many connections of apps that belong to this key", close=_CLOSE_TRY_LATER
            )
        self._owners[socket] = owner

    async def _init_message(self, socket: AppSocket) -> InitMessage:
        frame: str | bytes | None = None
        with anyio.move_on_after(self._settings.first_frame) as limit:
            frame = await socket.receive()
        if limit.cancelled_caught:
            raise _HandshakeError(f"no {messages.CONNECTION_INIT} within {self._settings.first_frame:g} s")
        if frame is None:
            self._record_early_close()
            raise _HandshakeError("closed before its first message")
        if len(frame) > self._settings.frame_bytes:
            raise _HandshakeError("the message is too large", close=1009)
        try:
            found = parse_app_message(messages.parse_message(frame))
        except InvalidMessage as fault:
            raise _HandshakeError(f"the first message cannot be read: {fault}") from None
        if not isinstance(found, InitMessage):
            raise _HandshakeError(f"the first message must be {messages.CONNECTION_INIT}")
        return found

    def _session(self, init: InitMessage) -> AppStateMachine | None:
        end = f"-{init.package}"
        if not init.session.endswith(end):
            return None
        return self._machines.get(init.session.removesuffix(end), init.package)

    def _verified_owner(self, init: InitMessage, machine: AppStateMachine | None) -> str:
        """Verify the app's API key; return the key that owns the app."""
        app = self._find(init.package)
        digest = app.digest if app is not None else None
        if (
            compare_digest(key_digest(init.key), digest or _DUMMY_DIGEST)
            and app is not None
            and digest is not None
        ):
            return app.owner
        if machine is not None:
            message = f"{init.package} connected with a wrong API key; its developer must fix that"
            machine.attempt.suspect(not_available("authentication", message, retryable=False), named=True)
        refused = _HandshakeError("the API key is not the one of this app", "INVALID_API_KEY")
        refused.package = init.package
        raise refused

    async def _ack(self, machine: AppStateMachine) -> str:
        try:
            user = await self._latest(machine)
        except Exception as error:  # boundary: whatever the store raises, the app gets an error
            log.exception("the handshake of app %s failed", machine.package)
            message = f"{machine.package} connected, and its session could not be read; try again"
            machine.attempt.suspect(not_available("connection", message, retryable=True), named=True)
            raise _HandshakeError("the session could not be read", "INTERNAL_ERROR") from error
        installs = () if user is None else user.installs
        settings = next((each.settings for each in installs if each.package == machine.package), _NO_SETTINGS)
        device = connected_device(user)
        ack = messages.connection_ack(
            machine.session,
            settings=settings,
            capabilities=None if device is None else device.capabilities,
            now=self._clock(),
            language=user_language(user),
        )
        return messages.encode(ack)

    async def _latest(self, machine: AppStateMachine) -> UserRecord | None:
        """Read the user; reread if something changed during the read: the app could not be notified yet."""
        while True:
            before = machine.changes
            user = await self._user(machine.user)
            if machine.changes == before:
                return user

    def _record_early_close(self) -> None:
        """Record a connection that closed before it authenticated, if only one app can be the cause."""
        if len(self._machines.expected) == 1:
            (machine,) = self._machines.expected
            message = f"{machine.package} disconnected before it authenticated; try again"
            machine.attempt.suspect(not_available("connection", message, retryable=True), named=False)
