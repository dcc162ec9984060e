"""A server with notes to list, read and remove, as JSON in text: `python -m tests.servers.notes`."""

from typing import Any

from tests.servers.plain import Lines, Server, Tool

NOTES = [{"id": f"note_{number}", "title": f"Note {number}"} for number in range(1, 6)]
PAGE = 2
NOTE: Any = {
    "type": "object",
    "properties": {"noteId": {"type": "string", "pattern": "^note_[0-9]+$"}},
    "required": ["noteId"],
}
PAGES: Any = {"type": "object", "properties": {"cursor": {"type": "string"}}}


def listed(arguments: Any) -> Any:
    start = int(arguments.get("cursor") or 0)
    following = start + PAGE
    return {
        "notes": NOTES[start:following],
        "nextCursor": str(following) if following < len(NOTES) else None,
    }


def read(arguments: Any) -> Any:
    return next(note for note in NOTES if note["id"] == arguments["noteId"])


def removed(arguments: Any) -> Any:
    return {"removed": arguments["noteId"]}


TOOLS = {
    "list-notes": Tool("List the notes, a page at a time.", listed, PAGES, query=True),
    "get-note": Tool("Read a note.", read, NOTE, query=True),
    "remove-note": Tool("Remove a note.", removed, NOTE),
}

if __name__ == "__main__":
    Lines(Server("notes", TOOLS)).run()
