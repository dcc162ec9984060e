"""Meaning of field and parameter names: the entity they refer to (`deck`) and its attribute (`id`)."""

from functools import lru_cache
from typing import NamedTuple

from toolcrib.names import snake_case

_ATTRIBUTES = {
    **{
        word: word
        for word in ("id", "key", "name", "number", "slug", "code", "sha", "path", "uri", "email", "uuid")
    },
    "ids": "id",
    "identifier": "id",
    "keys": "key",
    "names": "name",
    "numbers": "number",
    "no": "number",
    "slugs": "slug",
    "codes": "code",
    "paths": "path",
    "guid": "uuid",
    "login": "login",
    "handle": "handle",
    "url": "uri",
    "urls": "uri",
    "uris": "uri",
    "link": "uri",
    "href": "uri",
    "mail": "email",
}
"""Words for attributes that identify something, and the one they are compared as."""


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONTAINERS = _word_set(
    "items item results result data list entries entry records record rows row hits hit values value matches"
    " match content contents nodes node edges edge response output page objects object found"
)
"""Names of containers that say nothing about what is in them."""
_MODIFIERS = _word_set("next new current latest last first selected default my the all due random")
_PREPOSITIONS = _word_set("by for of with from in at to on as and")
_VERBS = _word_set(
    "get read fetch show list search find query lookup look retrieve load describe view open check count"
    " create add make insert new save store write put post set update edit change modify patch rename move"
    " copy delete remove destroy drop purge erase clear uninstall discard trash revoke cancel send start stop"
    " run execute begin end finish review adjust browse explore inspect download upload import export is has"
    " can do resolve select pick choose suggest recommend compare analyze"
)
_REMOVAL_VERBS = _word_set("delete remove destroy drop purge erase clear uninstall discard trash revoke")
READING_VERBS = _word_set("get read fetch show describe view retrieve load inspect")
CHECKING_VERBS = READING_VERBS | _word_set("list search find query lookup check")
SELF_IDENTIFYING = _word_set(
    "isbn sku username login owner repo repository branch sha symbol ticker domain hostname iban vin asin doi"
    " pmid orcid barcode ean upc slug handle email path file filename directory folder uri"
)
"""Names that identify something of one kind without naming an entity."""
IDENTIFIERS = frozenset(("id", "key", "number", "slug", "code", "sha", "uuid", "login", "handle"))
"""Attributes whose values have no meaning beyond identifying an entity."""


class Meaning(NamedTuple):
    """The entity and attribute of a name: `deckId` is the `id` of a `deck`."""

    name: str
    """All words in singular, joined by `_`."""
    entity: str
    """Empty where neither the name nor its surroundings tell."""
    attribute: str
    """Empty where the last word is no attribute that identifies something."""
    explicit: bool
    """Whether the entity is in the name itself or in that of its container."""


@lru_cache(maxsize=8192)
def meaning(name: str, container: str = "", noun: str = "") -> Meaning:
    """Return the meaning of a name in a container, such as `id` in `decks`; `noun` is that of its tool."""
    words = _words(name)
    whole = _entity(words)
    attribute = _ATTRIBUTES.get(words[-1], "") if words else ""
    own = _entity([word for word in words[:-1] if word not in _CONTAINERS]) if attribute else ""
    around = entity_of_container(container)
    return Meaning(whole, own or (around or noun if attribute else ""), attribute, bool(own or around))


@lru_cache(maxsize=4096)
def entity_of_container(name: str) -> str:
    """Return the entity that a container holds: `deck` for `decks`; empty for `items` and the like."""
    words = [word for word in _words(name) if word not in _CONTAINERS]
    return _entity(words)


@lru_cache(maxsize=20_000)
def noun_of_tool(local_name: str) -> str:
    """Return the entity that a tool is about: `deck` for `search-decks`; empty where the name has none."""
    words = _words(local_name)
    while len(words) > 1 and words[-1][0] == "v" and words[-1][1:].isdigit():
        words = words[:-1]
    while words and words[0] in _VERBS:
        words = words[1:]
    for place, word in enumerate(words):
        if word in _PREPOSITIONS:
            words = words[:place]
            break
    return _entity([word for word in words if word not in _CONTAINERS])


def verb_of_tool(local_name: str) -> str:
    """Return the first word of a tool's name."""
    words = _words(local_name)
    return words[0] if words else ""


def removes(local_name: str) -> bool:
    """Whether a tool's name says that it removes something."""
    return not _REMOVAL_VERBS.isdisjoint(_words(local_name))


def _words(name: str) -> list[str]:
    return [word for word in snake_case(name).split("_") if word]


def _entity(words: list[str]) -> str:
    while len(words) > 1 and words[0] in _MODIFIERS:
        words = words[1:]
    return "_".join((*words[:-1], _singular(words[-1]))) if words else ""


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 2 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
