"""Demo app for photos: requires a camera, but generates pictures of two colours."""

from base64 import b64encode
from datetime import UTC, datetime
from struct import pack
from typing import Any
from zlib import compress, crc32

from toolcrib.demo.apps.stored_list import StoredList, session_of
from toolcrib.sdk import AppContext, AppServer, AppSession, HandledTool, ToolResult, create_tool

PACKAGE = "com.toolcrib.photo"
_WIDTH, _HEIGHT = 32, 24
_MAX_PHOTOS = 50
_CAPTION = {"type": "string", "description": "What it shows, in a few words.", "maxLength": 80}

Arguments = dict[str, Any]


def photo_app(key: str) -> AppServer:
    """Return the app, which a server has to serve."""
    app = AppServer(package=PACKAGE, api_key=key)
    photos = Photos()
    for tool in photos.tools():
        app.register_tool(tool)
    app.on_stop(photos.forget)
    return app


class Photos:
    """Tools of the app. Only the data of a photo is stored; its picture is generated from its number."""

    def __init__(self) -> None:
        self._list = StoredList("photos")

    async def take(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Take a photo."""
        session = session_of(context)
        await context.report(0, 2, "Focusing")
        async with self._list.update(session) as entries:
            number = entries[-1]["number"] + 1 if entries else 1
            taken = datetime.fromtimestamp(context.at, UTC).isoformat(timespec="seconds")
            photo = {"number": number, "caption": arguments.get("caption"), "taken": taken}
            await context.report(1, 2, "Developing")
            entries[:] = [*entries, photo][-_MAX_PHOTOS:]
        await session.layouts.show_text_wall(f"Photo {number}\n{photo['caption'] or ''}", duration_ms=5_000)
        picture = f"data:image/png;base64,{b64encode(png(number)).decode()}"
        data = {"photo": {**photo, "image": picture}}
        return ToolResult(data=data, message=f"Photo {number} is taken.", follow_ups=("Show my photos",))

    async def show(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """List the photos, the newest first."""
        session = session_of(context)
        photos = list(reversed(await self._list.entries(session)))
        lines = [f"{each['number']}. {each['caption'] or each['taken']}" for each in photos]
        await session.layouts.show_reference_card("Photos", "\n".join(lines) or "None yet.")
        count = f"{len(photos)} photo{'' if len(photos) == 1 else 's'}"
        return ToolResult(data={"photos": photos}, message=f"You have {count}.")

    def forget(self, session: AppSession, reason: str) -> None:
        """Release the lock of a user whose session has ended; the photos stay stored in the gateway."""
        self._list.forget(session.user_id)

    def tools(self) -> tuple[HandledTool, ...]:
        """Return the tools of the app."""
        return (
            create_tool(
                name="take_photo",
                description="Take a photo of what the user sees. Use it when one is wanted.",
                parameters={
                    "caption": {
                        "type": "string",
                        "description": "What it shows, in a few words.",
                        "maxLength": 80,
                    }
                },
                activation_phrases={
                    "en": ["take a photo", "take a picture"],
                    "de": ["mach ein Foto", "nimm ein Bild auf"],
                },
                category="media",
                handler=self.take,
            ),
            create_tool(
                name="list_photos",
                description="List the photos that were taken, the newest first. Use it to find one again.",
                activation_phrases={
                    "en": ["show my photos", "which photos do I have"],
                    "de": ["zeige meine Fotos", "welche Fotos habe ich"],
                },
                category="media",
                handler=self.show,
            ),
        )


def png(number: int) -> bytes:
    """Return a PNG of a sky over a field, in colours derived from the number."""
    sky = [(number * 47 + shift) % 200 + 40 for shift in (0, 60, 120)]
    field = [(number * 31 + shift) % 160 + 20 for shift in (90, 10, 40)]
    rows = b"".join(
        b"\0" + bytes(sky if row < _HEIGHT * 2 // 3 else field) * _WIDTH for row in range(_HEIGHT)
    )
    header = pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(body)) + kind + body + pack(">I", crc32(kind + body)) for kind, body in parts
    )
