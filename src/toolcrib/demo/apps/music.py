"""Demo app for music: plays invented songs on devices with a speaker."""

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
    """A song that plays or is paused."""

    song: Song
    position: float
    """Seconds of the song that had been played at `since`."""
    since: float | None
    """Time of the last start; None while it is paused."""

    def at(self, now: float) -> float:
        """Return the position in seconds."""
        return self.position if self.since is None else self.position + now - self.since


def music_app(key: str, clock: Callable[[], float] = monotonic) -> AppServer:
    """Return the app, which a server has to serve."""
    app = AppServer(package=PACKAGE, api_key=key)
    music = Music(clock)
    for tool in music.tools():
        app.register_tool(tool)
    app.on_stop(music.stop)
    return app


class Music:
    """Tools of the app; the song of each user is kept in memory while the app is open."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._playing: dict[str, Playing] = {}

    async def play(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Play a song, or resume the paused one."""
        session = session_of(context)
        playing, title = self._current(session), arguments.get("title")
        if title is None and playing is not None and playing.since is None:
            playing = replace(playing, since=self._clock())
        else:
            playing = Playing(_find_song(title, playing), 0.0, self._clock())
        self._playing[session.user_id] = playing
        return await self._show(session, playing, f"Playing {playing.song.title} by {playing.song.artist}.")

    async def pause(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Pause the song that plays."""
        session = session_of(context)
        playing = self._current(session)
        if playing is None or playing.since is None:
            raise BusinessRuleError("NOTHING_PLAYING", "no music is playing; play a song first")
        playing = replace(playing, position=playing.at(self._clock()), since=None)
        self._playing[session.user_id] = playing
        return await self._show(session, playing, f"Paused {playing.song.title}.")

    async def describe(self, arguments: Arguments, context: AppContext) -> ToolResult[Any]:
        """Return the song that plays."""
        session = session_of(context)
        playing = self._current(session)
        if playing is None:
            data = {"playing": False, "song": None}
            return ToolResult(data=data, message="Nothing is playing.", follow_ups=("Play something",))
        state_text = "is paused" if playing.since is None else "is playing"
        return await self._show(
            session, playing, f"{playing.song.title} by {playing.song.artist} {state_text}."
        )

    def stop(self, session: AppSession, reason: str) -> None:
        """Stop the music of a user whose session has ended."""
        self._playing.pop(session.user_id, None)

    def _current(self, session: AppSession) -> Playing | None:
        """Return the song of the user; None if there is none or it has ended."""
        playing = self._playing.get(session.user_id)
        ended = playing is not None and playing.at(self._clock()) >= playing.song.seconds
        return None if ended else playing

    async def _show(self, session: AppSession, playing: Playing, message: str) -> ToolResult[Any]:
        song, position = playing.song, int(playing.at(self._clock()))
        state = "Paused" if playing.since is None else "Playing"
        await session.layouts.show_double_text_wall(
            f"{state}  {_format_time(position)} of {_format_time(song.seconds)}",
            f"{song.title}\n{song.artist}",
        )
        song_data = {"title": song.title, "artist": song.artist, "seconds": song.seconds}
        data = {"playing": playing.since is not None, "song": song_data, "position": position}
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
                handler=self.describe,
            ),
        )


def _find_song(title: str | None, playing: Playing | None) -> Song:
    """Return the first song that contains the words; without words, the next song."""
    if title is None:
        index = -1 if playing is None else LIBRARY.index(playing.song)
        return LIBRARY[(index + 1) % len(LIBRARY)]
    for song in LIBRARY:
        if title.casefold() in f"{song.title} by {song.artist}".casefold():
            return song
    titles = ", ".join(song.title for song in LIBRARY)
    raise BusinessRuleError("SONG_NOT_FOUND", f"there is no song like {title!r}; there are: {titles}")


def _format_time(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02}"
