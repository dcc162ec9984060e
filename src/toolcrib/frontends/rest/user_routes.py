"""The route table of users."""

from toolcrib.frontends.rest.app_routes import USERS
from toolcrib.frontends.rest.schema_terms import COUNT, TEXT, gives, query, takes
from toolcrib.frontends.rest.user_events import UserEventStream
from toolcrib.frontends.rest.user_handlers import MOST_LISTED, UserRoutes
from toolcrib.http import Route


def user_routes(users: UserRoutes, outward: UserEventStream) -> tuple[Route, ...]:
    """Return every route of users."""
    return (*_themselves(users), *_apps(users), *_switches(users), *_session(users), *_words(users, outward))


def _themselves(users: UserRoutes) -> tuple[Route, ...]:
    page = [
        query("after", "from the first user after this id on"),
        query("limit", "the most users to list", {**COUNT, "minimum": 1, "maximum": MOST_LISTED}),
    ]
    return (
        Route(
            method="GET",
            path="/api/users",
            handler=users.list,
            summary="The users there are.",
            needs=USERS,
            whole=True,
            document={"parameters": page, **gives("Users")},
        ),
        Route(
            method="GET",
            path="/api/users/{id}",
            handler=users.get,
            summary="A user: their apps, whether these fit the device and run, and their session.",
            document=gives("User"),
        ),
        Route(
            method="PUT",
            path="/api/users/{id}",
            handler=users.put,
            summary="Stores a user's language and time zone.",
            action="users.update",
            document={**takes("NewUser", required=False), **gives("User")},
        ),
        Route(
            method="DELETE",
            path="/api/users/{id}",
            handler=users.drop,
            summary="Removes a user and everything of theirs.",
            action="users.remove",
            document=gives("Removed"),
        ),
    )


def _apps(users: UserRoutes) -> tuple[Route, ...]:
    return (
        Route(
            method="PUT",
            path="/api/users/{id}/apps/{package}",
            handler=users.install,
            summary="Installs an app for a user, or changes what they have set there.",
            action="users.install",
            document={**takes("NewInstall", required=False), **gives("Installed", "200", "201")},
        ),
        Route(
            method="DELETE",
            path="/api/users/{id}/apps/{package}",
            handler=users.uninstall,
            summary="Stops an app of a user and takes it away.",
            action="users.uninstall",
            document=gives("Removed"),
        ),
        Route(
            method="POST",
            path="/api/users/{id}/apps/{package}/start",
            handler=users.start,
            summary="Starts an app for a user, and waits until it runs.",
            action="users.start_app",
            calls=True,
            document=gives("Started"),
        ),
        Route(
            method="POST",
            path="/api/users/{id}/apps/{package}/stop",
            handler=users.stop,
            summary="Stops an app of a user.",
            action="users.stop_app",
            document=gives("Started"),
        ),
    )


def _switches(users: UserRoutes) -> tuple[Route, ...]:
    return (
        Route(
            method="PUT",
            path="/api/users/{id}/tools/{name}/disabled",
            handler=users.disable,
            summary="Switches a tool, or a whole app by its package, off for a user.",
            action="users.disable",
            document=gives("Switched"),
        ),
        Route(
            method="DELETE",
            path="/api/users/{id}/tools/{name}/disabled",
            handler=users.enable,
            summary="Switches a tool or an app on again for a user.",
            action="users.enable",
            document=gives("Switched"),
        ),
    )


def _session(users: UserRoutes) -> tuple[Route, ...]:
    return (
        Route(
            method="GET",
            path="/api/users/{id}/session",
            handler=users.session,
            summary="A user's session.",
            document=gives("Session"),
        ),
        Route(
            method="PUT",
            path="/api/users/{id}/session",
            handler=users.begin,
            summary="Begins a user's session, or changes its device, language and time zone.",
            action="users.begin_session",
            document={**takes("NewSession", required=False), **gives("Session")},
        ),
        Route(
            method="DELETE",
            path="/api/users/{id}/session",
            handler=users.end,
            summary="Ends a user's session, and every app that runs in it.",
            action="users.end_session",
            document=gives("Ended"),
        ),
    )


def _words(users: UserRoutes, outward: UserEventStream) -> tuple[Route, ...]:
    events = {"200": {"description": "events", "content": {"text/event-stream": {"schema": TEXT}}}}
    return (
        Route(
            method="POST",
            path="/api/users/{id}/transcription",
            handler=users.transcribe,
            summary="Passes on what a user says to the apps that listen.",
            document={**takes("Transcription"), **gives("Delivered")},
        ),
        Route(
            method="GET",
            path="/api/users/{id}/events",
            handler=outward.listen,
            summary="Streams what apps show and say: events display, speak, tool, app.",
            # No cookie: the page does not use this stream, and a session that ends must leave none open.
            cookie=False,
            stays=True,
            document={"responses": events},
        ),
    )
