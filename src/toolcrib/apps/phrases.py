"""Activation phrases: utterances that invoke a tool, by language."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolcrib.apps.definition_errors import DefinitionFault, at, word_faults
from toolcrib.model import JsonObject

FIELD = "activationPhrases"
FALLBACK = "en"
# Phrases per language.
MOST = 100
# Characters of one phrase.
LONGEST = 200
_LONGEST_TAG = 35


def phrases(extensions: JsonObject, language: str) -> tuple[str, ...]:
    """Return a tool's phrases for a language: exact tag, base language, English, or the first one."""
    given: Any = extensions.get(FIELD)
    if isinstance(given, Mapping):
        given = _spoken(cast("Mapping[str, Any]", given), _tag(language))
    return tuple(cast("list[str]", given)) if isinstance(given, list) else ()


def every_phrase(extensions: JsonObject) -> Iterator[str]:
    """Yield a tool's phrases in all languages: a search query may be in any."""
    given: Any = extensions.get(FIELD)
    lists = cast("Mapping[str, Any]", given).values() if isinstance(given, Mapping) else (given,)
    for said in lists:
        yield from cast("list[str]", said) if isinstance(said, list) else ()


def _spoken(by_language: Mapping[str, Any], wanted: str) -> Any:
    known = {_tag(tag): said for tag, said in by_language.items()}
    for tag in (wanted, wanted.partition("-")[0], FALLBACK):
        if tag in known:
            return known[tag]
    return next(iter(known.values()), None)


def _tag(language: str) -> str:
    return language.replace("_", "-").casefold()


def phrase_faults(given: object, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of activation phrases: a list, or a list for each language."""
    if not isinstance(given, Mapping):
        yield from _list_faults(given, path)
        return
    for tag, said in cast("Mapping[str, Any]", given).items():
        if not tag or len(tag) > _LONGEST_TAG or not tag.replace("-", "").replace("_", "").isalnum():
            yield DefinitionFault(at(path, tag), "must be the tag of a language, such as en or de-CH")
        yield from _list_faults(said, at(path, tag))


def _list_faults(given: object, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(given, list):
        yield DefinitionFault(path, "must be an array of strings, or an object of such arrays by language")
        return
    said = cast("list[Any]", given)
    if len(said) > MOST:
        yield DefinitionFault(path, f"holds {len(said)} phrases, at most {MOST} are allowed")
        return
    for place, each in enumerate(said):
        yield from word_faults(each, at(path, place), most=LONGEST)
