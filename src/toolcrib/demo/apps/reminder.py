"""Demo app for reminders: stores, displays and speaks them; requires no hardware."""

from typing import Any

from toolcrib.demo.apps.stored_list import Entries, StoredList, session_of
from toolcrib.sdk import (
    AppContext,
    AppServer,
    AppSession,
    BusinessRuleError,
    HandledTool,
    ToolResult,
    Transcription,
    create_tool,
)

PACKAGE = "com.toolcrib.reminder"
_MAX_OPEN_REMINDERS = 100
_SHOWN_MS = 30_000
_SPOKEN_PREFIXES = ("remind me to ", "erinnere mich an ")
_WHEN = {"type": "string", "description": "When, in the user's words.", "maxLength": 80}
_PHRASES = {
    "add_reminder": {"en": ["remind me to", "add a reminder"], "de": ["erinnere mich an", "neue Erinnerung"]},
    "list_reminders": {
        "en": ["what are my reminders", "show my reminders"],
        "de": ["zeige meine Erinnerungen", "woran muss ich denken"],
    },
    "complete_reminder": {
        "en": ["I have done", "complete the reminder"],
        "de": ["ich habe erledigt", "Erinnerung erledigt"],
    },
}

Arguments = dict[str, Any]


def reminder_app(key: str) -> AppServer:
    """Return the app, which a server has to serve."""
    app = AppServer(package=PACKAGE, api_key=key)
    reminders = Reminders()
    for tool in reminders.tools():
        app.register_tool(tool)
    app.on_transcription(reminders.add_from_speech)
    app.on_stop(reminders.forget)
    return app


class Reminders:
    """Tools of the app; every user has a separate list."""

    def __init__(self) -> None:
        self._list = StoredList("reminders")

    async def add(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Store a reminder, display all open ones and confirm it by speech."""
        return await self._add(session_of(context), arguments["text"], arguments.get("when"))

    async def show(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Display the open reminders."""
        session = session_of(context)
        open_reminders = _open(await self._list.entries(session))
        count = f"{len(open_reminders)} reminder{'' if len(open_reminders) == 1 else 's'}"
        next_ones = ("Complete the first one",) if open_reminders else ()
        return await _show_reminders(session, f"You have {count}.", open_reminders, follow_ups=next_ones)

    async def complete(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Mark a reminder as done."""
        session = session_of(context)
        async with self._list.update(session) as entries:
            found = _find(entries, str(arguments["reminder"]))
            found["done"] = True
            open_reminders = _open(entries)
        return await _show_reminders(session, f"Done: {found['text']}.", open_reminders)

    async def add_from_speech(self, session: AppSession, transcription: Transcription) -> None:
        """Add a reminder if the user's speech starts with a known phrase."""
        text = transcription.text.strip().rstrip(".!")
        prefix = next((each for each in _SPOKEN_PREFIXES if text.lower().startswith(each)), None)
        if transcription.is_final and prefix is not None and len(text) > len(prefix):
            await self._add(session, text[len(prefix) :], None)

    def forget(self, session: AppSession, reason: str) -> None:
        """Release the lock of a user whose session has ended; the reminders stay stored in the gateway."""
        self._list.forget(session.user_id)

    async def _add(self, session: AppSession, text: str, when: str | None) -> ToolResult[Any]:
        async with self._list.update(session) as entries:
            if len(entries) >= _MAX_OPEN_REMINDERS:
                entries[:] = _open(entries)
            if len(entries) >= _MAX_OPEN_REMINDERS:
                raise BusinessRuleError(
                    "TOO_MANY_REMINDERS", f"{_MAX_OPEN_REMINDERS} are open; complete one first"
                )
            entries.append({"text": text, "when": when, "done": False})
            open_reminders = _open(entries)
        return await _show_reminders(
            session, f"Noted: {text}.", open_reminders, follow_ups=("What are my reminders?",)
        )

    def tools(self) -> tuple[HandledTool, ...]:
        """Return the tools of the app."""
        return (
            create_tool(
                name="add_reminder",
                description="Add a reminder for the user. Use it when something is not to be forgotten.",
                parameters={"text": _text("What to remember, such as: buy milk."), "when": _WHEN},
                required=["text"],
                activation_phrases=_PHRASES["add_reminder"],
                category="productivity",
                handler=self.add,
            ),
            create_tool(
                name="list_reminders",
                description="List the reminders that are still open. Use it to see what is to be done.",
                activation_phrases=_PHRASES["list_reminders"],
                category="productivity",
                handler=self.show,
            ),
            create_tool(
                name="complete_reminder",
                description="Mark a reminder as done. Use it when the user has seen to it.",
                parameters={"reminder": _text("Its number in the list, or some words of it.")},
                required=["reminder"],
                activation_phrases=_PHRASES["complete_reminder"],
                category="productivity",
                handler=self.complete,
            ),
        )


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description, "minLength": 1, "maxLength": 200}


def _open(entries: Entries) -> Entries:
    return [each for each in entries if not each["done"]]


def _find(entries: Entries, wanted: str) -> dict[str, Any]:
    open_reminders = _open(entries)
    if wanted.isdecimal() and 0 < int(wanted) <= len(open_reminders):
        return open_reminders[int(wanted) - 1]
    for each in open_reminders:
        if wanted.casefold() in each["text"].casefold():
            return each
    raise BusinessRuleError("REMINDER_NOT_FOUND", f"no open reminder is like {wanted!r}; list them first")


async def _show_reminders(
    session: AppSession, message: str, open_reminders: Entries, *, follow_ups: tuple[str, ...] = ()
) -> ToolResult[Any]:
    """Display the open reminders and speak the message; a spoken one is not repeated by the assistant."""
    lines = [f"{number}. {_line(each)}" for number, each in enumerate(open_reminders, 1)]
    await session.layouts.show_reference_card(
        "Reminders", "\n".join(lines) or "Nothing to do.", duration_ms=_SHOWN_MS
    )
    spoken = await session.audio.speak(message)
    data = [
        {"number": n, "text": each["text"], "when": each["when"]} for n, each in enumerate(open_reminders, 1)
    ]
    return ToolResult(
        data={"reminders": data}, message=message, suppress_voice=spoken.success, follow_ups=follow_ups
    )


def _line(entry: dict[str, Any]) -> str:
    return f"{entry['text']} ({entry['when']})" if entry["when"] else str(entry["text"])
