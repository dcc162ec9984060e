"""The reminder app: reminders that are shown, said and kept. It needs no hardware at all."""

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
    """Make the app."""
    app = AppServer(package=PACKAGE, api_key=key)
    reminders = Reminders()
    for tool in reminders.tools():
        app.register_tool(tool)
    app.on_transcription(reminders.hear)
    app.on_stop(reminders.forget)
    return app


class Reminders:
    """What the app does, for each user apart."""

    def __init__(self) -> None:
        self._shelf = StoredList("reminders")

    async def add(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Note a reminder, show them all, and say so."""
        return await self._add(session_of(context), arguments["text"], arguments.get("when"))

    async def show(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Show what is still to be done."""
        session = session_of(context)
        due = _open(await self._shelf.entries(session))
        count = f"{len(due)} reminder{'' if len(due) == 1 else 's'}"
        next_ones = ("Complete the first one",) if due else ()
        return await _told(session, f"You have {count}.", due, follow_ups=next_ones)

    async def complete(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Tick a reminder off."""
        session = session_of(context)
        async with self._shelf.changing(session) as entries:
            found = _found(entries, str(arguments["reminder"]))
            found["done"] = True
            due = _open(entries)
        return await _told(session, f"Done: {found['text']}.", due)

    async def hear(self, session: AppSession, heard: Transcription) -> None:
        """Take a reminder from what the user says, while the app is open."""
        said = heard.text.strip().rstrip(".!")
        asked = next((each for each in _SPOKEN_PREFIXES if said.lower().startswith(each)), None)
        if heard.is_final and asked is not None and len(said) > len(asked):
            await self._add(session, said[len(asked) :], None)

    def forget(self, session: AppSession, reason: str) -> None:
        """Let go of a user who has left; the reminders stay at the gateway."""
        self._shelf.forget(session.user_id)

    async def _add(self, session: AppSession, text: str, when: str | None) -> ToolResult[Any]:
        async with self._shelf.changing(session) as entries:
            if len(entries) >= _MAX_OPEN_REMINDERS:
                entries[:] = _open(entries)
            if len(entries) >= _MAX_OPEN_REMINDERS:
                raise BusinessRuleError(
                    "TOO_MANY_REMINDERS", f"{_MAX_OPEN_REMINDERS} are open; complete one first"
                )
            entries.append({"text": text, "when": when, "done": False})
            due = _open(entries)
        return await _told(session, f"Noted: {text}.", due, follow_ups=("What are my reminders?",))

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


def _found(entries: Entries, wanted: str) -> dict[str, Any]:
    due = _open(entries)
    if wanted.isdecimal() and 0 < int(wanted) <= len(due):
        return due[int(wanted) - 1]
    for each in due:
        if wanted.casefold() in each["text"].casefold():
            return each
    raise BusinessRuleError("REMINDER_NOT_FOUND", f"no open reminder is like {wanted!r}; list them first")


async def _told(
    session: AppSession, message: str, due: Entries, *, follow_ups: tuple[str, ...] = ()
) -> ToolResult[Any]:
    """Show what is open and say what happened; where that was heard, no assistant need repeat it."""
    lines = [f"{number}. {_line(each)}" for number, each in enumerate(due, 1)]
    await session.layouts.show_reference_card(
        "Reminders", "\n".join(lines) or "Nothing to do.", duration_ms=_SHOWN_MS
    )
    spoken = await session.audio.speak(message)
    data = [{"number": n, "text": each["text"], "when": each["when"]} for n, each in enumerate(due, 1)]
    return ToolResult(
        data={"reminders": data}, message=message, suppress_voice=spoken.success, follow_ups=follow_ups
    )


def _line(entry: dict[str, Any]) -> str:
    return f"{entry['text']} ({entry['when']})" if entry["when"] else str(entry["text"])
