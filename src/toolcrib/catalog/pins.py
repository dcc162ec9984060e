"""Notices when a tool is no longer what it was: the definition seen first is trusted, or the approved one."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from time import time
from typing import Literal

import orjson

from toolcrib.catalog.canonical import canonical_form
from toolcrib.interfaces import StoredDefinition
from toolcrib.model import JsonObject

log = logging.getLogger(__name__)

MOST_KEPT = 10_000
"""How many definitions are remembered."""
LARGEST = 256 * 1024
"""Bytes a definition may take to be remembered."""

Mode = Literal["strict", "notify", "off"]
"""What becomes of a tool that has changed: hidden until it is approved, served and reported, or served."""

Seen = Callable[[Sequence[StoredDefinition], Collection[str]], None]
"""Told which definitions are new or other than before, and which names to forget, to keep it in the store."""


@dataclass(frozen=True, slots=True)
class PinChange:
    """A tool whose definition is not the good one."""

    name: str
    trusted: str
    """Hash of the good definition: the approved one, else the first; empty where none could be remembered."""
    seal: str
    """Hash of what its source offers now, which an operator may approve; empty where it has none."""
    mode: Mode


def seal(definition: JsonObject) -> str:
    """Hash a definition in its canonical form; empty where it is too large, or no JSON."""
    try:
        return seal_as_written(canonical_form(definition))
    except TypeError:
        return ""


def seal_as_written(definition: JsonObject) -> str:
    """Hash a definition as earlier versions did: nothing but the order of keys is left out of account.

    What they stored and operators approved are such hashes. Whoever matches one is the very definition.
    """
    try:
        text = orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return ""
    return sha256(text).hexdigest() if len(text) <= LARGEST else ""


class Pins:
    """What every tool was when it was first seen, what was approved since, and how strict each source is.

    A tool that its source no longer offers is remembered all the same, lest it come back as another.
    """

    def __init__(
        self, known: Sequence[StoredDefinition], sources: Sequence[str], seen: Seen, *, most: int = MOST_KEPT
    ) -> None:
        self._kept = {each.name: each for each in known}
        self._hashed: dict[str, Mapping[str, tuple[JsonObject, str]]] = {}
        """By source and tool: what was looked at last, and its hash, so that it is not hashed again."""
        self._seen, self._most = seen, most
        self._approved: Mapping[str, str] = {}
        self._modes: Mapping[str, Mode] = {}
        self._left_out: dict[str, int] = {}
        self.changes: Counter[str] = Counter()
        """By source: how often a definition was another than the one seen before it."""
        # Another config may use the same store: what this one does not name is forgotten only for room.
        if len(self._kept) > most // 2:
            self.arrange(sources)

    def arrange(self, sources: Sequence[str]) -> None:
        """Forget the tools of sources that are not among these."""
        there = frozenset(sources)
        gone = [name for name in self._kept if name.partition(":")[0] not in there]
        for name in gone:
            del self._kept[name]
        self._hashed = {source: each for source, each in self._hashed.items() if source in there}
        if gone:
            self._seen((), gone)

    def approve(self, approved: Mapping[str, str], modes: Mapping[str, Mode]) -> None:
        """Take over the hashes an operator approved, by tool, and the mode of each source."""
        self._approved, self._modes = dict(approved), dict(modes)

    def look(self, source: str, definitions: Mapping[str, JsonObject]) -> dict[str, PinChange]:
        """Remember what a source offers now, and return what has changed."""
        seals = self._seals(source, definitions)
        self._remember(source, definitions, seals)
        mode = self._modes.get(source, "notify")
        if mode == "off":
            return {}
        found = [self._judge(name, definitions[name], seals[name], mode) for name in definitions]
        return {change.name: change for change in found if change is not None}

    def _seals(self, source: str, definitions: Mapping[str, JsonObject]) -> Mapping[str, str]:
        known, hashed = self._hashed.get(source, {}), dict[str, tuple[JsonObject, str]]()
        for name, definition in definitions.items():
            before = known.get(name)
            if before is None or before[0] is not definition:
                before = definition, seal(definition)
            hashed[name] = before
        self._hashed[source] = hashed
        return {name: mark for name, (_, mark) in hashed.items()}

    def _remember(self, source: str, definitions: Mapping[str, JsonObject], seals: Mapping[str, str]) -> None:
        now, fresh, left_out = time(), list[StoredDefinition](), 0
        room = self._room(source)
        for name, definition in definitions.items():
            kept, mark = self._kept.get(name), seals[name]
            if not mark or (kept is None and len(fresh) >= room):
                left_out += 1
            elif kept is None:
                fresh.append(
                    StoredDefinition(name=name, definition=definition, seal=mark, trusted=mark, seen=now)
                )
            elif kept.seal != mark or not kept.definition:
                fresh.append(self._again(source, kept, definition, mark, now))
        fresh += self._emptied(source, definitions)
        self._kept.update({each.name: each for each in fresh})
        if fresh:
            self._seen(fresh, ())
        if left_out > self._left_out.get(source, 0):
            log.warning("%s: %d definitions are too large or too many to be remembered", source, left_out)
        self._left_out[source] = left_out

    def _again(
        self, source: str, kept: StoredDefinition, definition: JsonObject, mark: str, now: float
    ) -> StoredDefinition:
        """Return what is remembered of a tool that is not as it was seen last, or that was gone."""
        kept = _renewed(kept)
        if kept.seal == mark and kept.definition:
            return kept
        self.changes[source] += kept.seal != mark
        return replace(kept, definition=definition, seal=mark, seen=now)

    def _emptied(self, source: str, definitions: Mapping[str, JsonObject]) -> list[StoredDefinition]:
        """Of what is no longer offered the hashes will do: renaming its tools, a source could fill us up."""
        return [
            replace(_renewed(kept), definition={})
            for name, kept in self._kept.items()
            if kept.definition and name not in definitions and name.startswith(f"{source}:")
        ]

    def _room(self, source: str) -> int:
        """How many more a source may have remembered: never more in all than it leaves free for others."""
        own = sum(name.startswith(f"{source}:") for name in self._kept)
        return max(0, (self._most - len(self._kept) - own + 1) // 2)

    def _judge(self, name: str, definition: JsonObject, mark: str, mode: Mode) -> PinChange | None:
        kept = self._kept.get(name)
        good = self._approved.get(name) or ("" if kept is None else kept.trusted)
        if mark and (mark == good or _is_good_as_written(good, definition, mark, kept)):
            return None
        # With nothing to compare it to, a tool is not known to have changed; nor is it known to be good.
        return PinChange(name, good, mark, mode) if good or mode == "strict" else None


def _renewed(kept: StoredDefinition) -> StoredDefinition:
    """Return what an older version stored with the hashes of this one, as far as the definition is known."""
    if not kept.definition or seal_as_written(kept.definition) != kept.seal:
        return kept
    mark = seal(kept.definition)
    return replace(kept, seal=mark, trusted=mark if kept.trusted == kept.seal else kept.trusted)


def _is_good_as_written(good: str, definition: JsonObject, mark: str, kept: StoredDefinition | None) -> bool:
    """Whether a good hash of an older version is that of this definition, or of one that means the same.

    The store keeps a definition as it was written when it was first seen in its canonical form, so the one
    that was approved is still there.
    """
    if not good:
        return False
    stored = kept is not None and kept.seal == mark and seal_as_written(kept.definition) == good
    return stored or seal_as_written(definition) == good
