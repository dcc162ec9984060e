"""Starts an app for a user: webhook, then wait for its connection."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol, cast

import anyio
from anyio.abc import TaskGroup

from toolcrib.apps import messages
from toolcrib.apps.errors import app_error
from toolcrib.apps.hardware import InvalidDevice, check_compatibility, parse_device
from toolcrib.apps.signature import authentication_headers
from toolcrib.egress.json_post import PostResponse, PostResponseTooLarge, UrlForbidden
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp
from toolcrib.errors import Unavailable
from toolcrib.interfaces import AppRecord, UserRecord
from toolcrib.model import AddressGiver, Device, JsonObject, Problem
from toolcrib.schemas.json_parsing import InvalidJson, parse
from toolcrib.sessions.app_state import (
    AppStateMachine,
    AppTimeouts,
    StartAttempt,
    not_available,
    start_timeout,
    unavailable,
)

# --- Background tasks of app sessions ---

log = logging.getLogger(__name__)


class TaskRunner:
    """Starts tasks while a task group is set; at any other time they are dropped."""

    def __init__(self) -> None:
        self.tasks: TaskGroup | None = None

    @property
    def open(self) -> bool:
        """Whether tasks are accepted now."""
        return self.tasks is not None

    def begin(self, do: Callable[[], Awaitable[object]]) -> None:
        """Start a background task."""
        if self.tasks is not None:
            self.tasks.start_soon(_guarded, do)


async def _guarded(do: Callable[[], Awaitable[object]]) -> None:
    try:
        await do()
    except Exception:  # boundary: an error of one app must not end the tasks of the others
        log.exception("a background task of an app failed")


# --- Webhooks of apps: session requests and stop requests ---

STOP_REQUEST_SECONDS = 3.0
"""Timeout of a stop request, in seconds."""
# Bytes of one response body.
_MAX_RESPONSE_BYTES = 64 << 10
_ACCEPTED = PostResponse(200, "", b"")
# Characters of an app's error text in our error message.
_MAX_REASON_CHARS = 300
_STOP_REASONS = ("user_disabled", "system_stop", "error")
"""The stop reasons of the app protocol."""


class PostsJson(Protocol):
    """Outbound HTTP: `egress.json_post.JsonPoster`."""

    async def send(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        most_bytes: int,
        giver: AddressGiver | None = "other",
    ) -> PostResponse:
        """POST a JSON body under the address rules for the giver of the URL; return the response."""
        ...


class Webhooks:
    """Posts signed requests to the webhooks of apps."""

    def __init__(self, post: PostsJson, clock: Callable[[], float]) -> None:
        self._post, self._clock = post, clock
        self.address: str | None = None
        """Base URL at which apps reach the gateway."""
        self._leaving: dict[str, anyio.Event] = {}
        """Sessions with a stop request in flight: a later session request must not overtake it."""

    async def request_session(self, app: AppRecord, user: str) -> PostResponse:
        """Send a session request; return the app's response."""
        session = messages.session_id(user, app.package)
        if (leaving := self._leaving.get(session)) is not None:
            await leaving.wait()
        websocket = f"{_websocket_url(self.address or '')}/app-ws"
        message = messages.session_request(session, user, websocket=websocket, now=self._clock())
        return await self._send(app, user, message)

    async def request_stop(self, app: AppRecord, user: str, reason: str) -> None:
        """Send a stop request, best effort: the session is already over, so transport errors are ignored."""
        session = messages.session_id(user, app.package)
        leaving = self._leaving[session] = anyio.Event()
        try:
            with anyio.move_on_after(STOP_REQUEST_SECONDS):
                await self._send(
                    app,
                    user,
                    messages.stop_request(session, user, reason=stop_reason(reason), now=self._clock()),
                )
        except (NoConnection, ConnectionClosed, NotHttp):
            return
        finally:
            leaving.set()
            if self._leaving.get(session) is leaving:
                del self._leaving[session]

    async def _send(self, app: AppRecord, user: str, message: JsonObject) -> PostResponse:
        body = messages.encode(message).encode()
        headers = authentication_headers(
            app.digest, app.signing, user=user, tool="", body=body, now=self._clock()
        )
        try:
            url = f"{(app.public_url or '').rstrip('/')}/webhook"
            return await self._post.send(
                url, body, headers, most_bytes=_MAX_RESPONSE_BYTES, giver=app.url_giver
            )
        except PostResponseTooLarge:
            return _ACCEPTED  # error bodies are truncated, never too large; other bodies are not used


def error_suffix(reply: PostResponse) -> str:
    """Return the error text of an app's response, formatted as a suffix; empty if there is none."""
    try:
        body = parse(reply.body)
    except InvalidJson:
        return ""
    found = app_error(cast("JsonObject", body))[0] if type(body) is dict else ""
    return f": {found[:_MAX_REASON_CHARS]}" if found else ""


def stop_reason(reason: str) -> str:
    """Return a stop reason that apps know."""
    return reason if reason in _STOP_REASONS else "system_stop"


def _websocket_url(address: str) -> str:
    return "ws" + address.rstrip("/").removeprefix("http")


# --- Starts apps: calls the webhook, waits for the WebSocket connection, and restarts lost connections ---

WEBHOOK_RETRY_SECONDS = 0.3
"""Seconds before the webhook of an unreachable app is retried once."""


class AppStarter:
    """Starts apps in background tasks: a waiter that is cancelled does not abort the start for the others."""

    def __init__(
        self,
        settings: AppTimeouts,
        webhooks: Webhooks,
        background: TaskRunner,
        *,
        find: Callable[[str], AppRecord | None],
        user: Callable[[str], Awaitable[UserRecord | None]],
    ) -> None:
        self._settings, self._webhooks, self._background = settings, webhooks, background
        self._find, self._user = find, user

    def check(self, package: str, device: Device | None) -> AppRecord:
        """Return an app that may be started; raise what prevents it, before anything is sent."""
        app = self._app(package)
        found = self._incompatibility(app, device)
        if found is not None:
            raise unavailable(found)
        return app

    def fits(self, package: str, device: Device | None) -> bool:
        """Whether the app exists and the device meets its hardware requirements."""
        app = self._find(package)
        return app is not None and self._incompatibility(app, device) is None

    def begin(self, machine: AppStateMachine, app: AppRecord) -> None:
        """Start an app: call its webhook, with one retry."""
        self._start(machine, app, tries=2)

    def lost(self, machine: AppStateMachine, attempt: StartAttempt) -> None:
        """Give a disconnected app the grace period to reconnect, then call its webhook."""
        self._background.begin(partial(self._grace, machine, attempt))

    async def _grace(self, machine: AppStateMachine, attempt: StartAttempt) -> None:
        with anyio.move_on_after(self._settings.grace):
            await attempt.ended()
        if not machine.revive(attempt):
            return
        try:
            app = self._app(machine.package)
        except Unavailable as error:
            self._fail(machine, attempt, error.problem)
        else:
            self._start(machine, app, tries=1)

    def _start(self, machine: AppStateMachine, app: AppRecord, *, tries: int) -> None:
        # Two tasks: the timeout is for the connection, so a slow webhook response does not extend it.
        self._background.begin(partial(self._watch, machine, machine.attempt))
        self._background.begin(partial(self._call_webhook, machine, machine.attempt, app, tries))

    async def _watch(self, machine: AppStateMachine, attempt: StartAttempt) -> None:
        seconds = self._settings.activation
        attempt.limit.deadline = min(attempt.limit.deadline, anyio.current_time() + seconds)
        with attempt.limit:
            await attempt.ended()
        if attempt.open:
            self._fail(machine, attempt, attempt.reason(start_timeout(machine.package, seconds)))

    async def _call_webhook(
        self, machine: AppStateMachine, attempt: StartAttempt, app: AppRecord, tries: int
    ) -> None:
        # The webhook response is awaited even if the app has already connected: some apps respond last,
        # and may treat an aborted request as a reason to stop.
        found: Problem | None = None
        with anyio.move_on_after(self._settings.webhook):
            found = await self._unwanted(machine, app) or await self._posted(
                attempt, app, machine.user, tries
            )
            attempt.answered()
        attempt.recalled = False
        if found is not None:
            self._fail(machine, attempt, attempt.reason(found))

    async def _unwanted(self, machine: AppStateMachine, app: AppRecord) -> Problem | None:
        """Return why an app must not start after all: its user may have removed it since the request.

        Removing an app stores the change first and stops the app second. What is stored now is therefore
        decisive: if it changes later, this start is stopped.
        """
        name = app.package
        try:
            user = await self._user(machine.user)
        except Exception:  # boundary: whatever the store raises, the waiters get an error
            log.exception("app %s is not started: its user could not be read", name)
            message = f"{name} was not started: its user could not be read; try again"
            return not_available("webhook", message, retryable=True)
        if user is None or user.session is None:
            return not_available("webhook", f"{name} was not started: its user has left", retryable=False)
        if name in user.disabled or all(each.package != name for each in user.installs):
            message = f"{name} was not started: its user has uninstalled or disabled it"
            return not_available("webhook", message, retryable=False)
        return self._incompatibility(app, connected_device(user))

    async def _posted(self, attempt: StartAttempt, app: AppRecord, user: str, tries: int) -> Problem | None:
        name = app.package
        try:
            reply = await self._webhooks.request_session(app, user)
        except UrlForbidden as error:
            log.warning("the webhook of app %s is not called: %s", name, error)
            return not_available(
                "webhook", f"{name} is at an address that may not be called", retryable=False
            )
        except NoConnection:
            if tries <= 1 or not attempt.open:
                return not_available("webhook", f"the webhook of {name} cannot be reached", retryable=True)
            await anyio.sleep(WEBHOOK_RETRY_SECONDS)
            return await self._posted(attempt, app, user, tries - 1)
        except (ConnectionClosed, NotHttp):
            return not_available(
                "webhook", f"the webhook of {name} closed the connection without a response", retryable=True
            )
        status = reply.status
        if status < 400:
            return None
        message = f"the webhook of {name} answered {status}{error_suffix(reply)}"
        return not_available("webhook", message, retryable=status >= 500)

    def _fail(self, machine: AppStateMachine, attempt: StartAttempt, found: Problem) -> None:
        if attempt.open:
            log.warning("app %s did not start (%s): %s", machine.package, found.stage, found.message)
            machine.fail(attempt, found)

    def _app(self, package: str) -> AppRecord:
        app = self._find(package)
        if app is None:
            raise _refused("webhook", f"{package} is no longer offered")
        if not app.public_url:
            message = f"{package} has no public URL, so it cannot be started; its developer must set one"
            raise _refused("webhook", message)
        if app.digest is None:
            message = f"{package} has no API key to authenticate with; its developer must make one"
            raise _refused("authentication", message)
        if self._webhooks.address is None:
            message = f"{package} cannot connect: nothing listens here for apps; serve the gateway by HTTP"
            raise _refused("connection", message)
        if not self._background.open:
            raise _refused("connection", "no apps are started at the moment; try again", retryable=True)
        return app

    def _incompatibility(self, app: AppRecord, device: Device | None) -> Problem | None:
        phone = self._settings.phone_microphone
        found = check_compatibility(app.hardware, device, phone_microphone=phone)
        if found.is_compatible:
            return None
        return not_available("hardware", f"{app.package} cannot run: {found.message}", retryable=False)


def _refused(stage: str, message: str, *, retryable: bool = False) -> Unavailable:
    return unavailable(not_available(stage, message, retryable=retryable))


def connected_device(user: UserRecord | None) -> Device | None:
    """Return the device of a user with a session; None if there is none or it is invalid."""
    session = None if user is None else user.session
    if session is None or session.device is None:
        return None
    try:
        return parse_device(session.device)
    except InvalidDevice:
        return None


def user_language(user: UserRecord | None) -> str | None:
    """Return the language of a user's session or profile, if known."""
    if user is None:
        return None
    return (user.session.language if user.session is not None else None) or user.language
