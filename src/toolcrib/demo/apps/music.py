"""The music app: songs that nobody has ever heard, played where there is a speaker."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from toolcrib.demo.apps.stored_list import session_of
from toolcrib.sdk import (
    AppContext,
    AppServer,
    AppSession,
    BusinessRuleError,
    HandledTool,
    ToolResult,
    create_tool,
)

PACKAGE = "com.toolcrib.music"

_TITLE = {
    "type": "string",
    "description": "Some words of the title or the artist; without it any song plays.",
    "minLength": 1,
    "maxLength": 100,
}

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Song:
    """A song of the library."""

    title: str
    artist: str
    seconds: int


LIBRARY = (
    Song("Lathe in the Morning", "The Spare Keys", 194),
    Song("Counting Washers", "Odd Socket", 151),
    Song("A Drawer for Everything", "The Spare Keys", 223),
    Song("Left-Hand Thread", "Marta Vise", 178),
    Song("Slow Glue", "Marta Vise", 262),
    Song("Sparks at Half Past Ten", "Odd Socket", 207),
)


@dataclass(frozen=True, slots=True)
class Playing:
    """A song that plays, or is paused."""

    song: Song
    position: float
    """How many seconds of it had been played by `since`."""
    since: float | None
    """When it was set going; None while it is paused."""

    def at(self, now: float) -> float:
        """Return how far it is."""
        return self.position if self.since is None else self.position + now - self.since


def music_app(key: str, clock: Callable[[], float] = monotonic) -> AppServer:
    """Make the app."""
    app = AppServer(package=PACKAGE, api_key=key)
    music = Music(clock)
    for tool in music.tools():
        app.register_tool(tool)
    app.on_stop(music.forget)
    return app


class Music:
    """What the app does. What plays is known while the app is open, for each user apart."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._playing: dict[str, Playing] = {}

    async def play(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Play a song, or go on with the one that is paused."""
        session = session_of(context)
        playing, wanted = self._now(session), arguments.get("title")
        if wanted is None and playing is not None and playing.since is None:
            playing = replace(playing, since=self._clock())
        else:
            playing = Playing(_chosen(wanted, playing), 0.0, self._clock())
        self._playing[session.user_id] = playing
        return await self._told(session, playing, f"Playing {playing.song.title} by {playing.song.artist}.")

    async def pause(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Pause what plays."""
        session = session_of(context)
        playing = self._now(session)
        if playing is None or playing.since is None:
            raise BusinessRuleError("NOTHING_PLAYING", "no music is playing; play a song first")
        playing = replace(playing, position=playing.at(self._clock()), since=None)
        self._playing[session.user_id] = playing
        return await self._told(session, playing, f"Paused {playing.song.title}.")

    async def name(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Say what plays."""
        session = session_of(context)
        playing = self._now(session)
        if playing is None:
            data = {"playing": False, "song": None}
            return ToolResult(data=data, message="Nothing is playing.", follow_ups=("Play something",))
        verb = "is paused" if playing.since is None else "is playing"
        return await self._told(session, playing, f"{playing.song.title} by {playing.song.artist} {verb}.")

    def forget(self, session: AppSession, reason: str) -> None:
        """Stop the music of a user who has left."""
        self._playing.pop(session.user_id, None)

    def _now(self, session: AppSession) -> Playing | None:
        """Return what plays; a song that is over plays no more."""
        playing = self._playing.get(session.user_id)
        over = playing is not None and playing.at(self._clock()) >= playing.song.seconds
        return None if over else playing

    async def _told(self, session: AppSession, playing: Playing, message: str) -> ToolResult[Any]:
        song, position = playing.song, int(playing.at(self._clock()))
        state = "Paused" if playing.since is None else "Playing"
        await session.layouts.show_double_text_wall(
            f"{state}  {_time(position)} of {_time(song.seconds)}", f"{song.title}\n{song.artist}"
        )
        known = {"title": song.title, "artist": song.artist, "seconds": song.seconds}
        data = {"playing": playing.since is not None, "song": known, "position": position}
        return ToolResult(data=data, message=message)

    def tools(self) -> tuple[HandledTool, ...]:
        """Return the tools of the app."""
        return (
            create_tool(
                name="play_song",
                description="Play a song, or go on with the one that is paused. Use it when music is wanted.",
                parameters={"title": _TITLE},
                activation_phrases={"en": ["play", "put on some music"], "de": ["spiele", "mach Musik an"]},
                category="media",
                handler=self.play,
            ),
            create_tool(
                name="pause_music",
                description="Pause the music that plays. Use it when the user wants silence for a while.",
                activation_phrases={"en": ["pause", "stop the music"], "de": ["Pause", "mach die Musik aus"]},
                category="media",
                handler=self.pause,
            ),
            create_tool(
                name="what_is_playing",
                description="Say which song plays and how far it is. Use it when the user asks for its name.",
                activation_phrases={
                    "en": ["what is playing", "which song is this"],
                    "de": ["was läuft gerade", "wie heißt dieses Lied"],
                },
                category="media",
                handler=self.name,
            ),
        )


def _chosen(wanted: str | None, playing: Playing | None) -> Song:
    """Find a song by some words; without any it is the next one."""
    if wanted is None:
        last = -1 if playing is None else LIBRARY.index(playing.song)
        return LIBRARY[(last + 1) % len(LIBRARY)]
    for song in LIBRARY:
        if wanted.casefold() in f"{song.title} by {song.artist}".casefold():
            return song
    titles = ", ".join(song.title for song in LIBRARY)
    raise BusinessRuleError("SONG_NOT_FOUND", f"there is no song like {wanted!r}; there are: {titles}")


def _time(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02}"
