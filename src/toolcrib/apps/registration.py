"""Validation of app registrations: name, public URL, type, hardware requirements, permissions."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from toolcrib.apps.definition_errors import (
    DefinitionFault,
    at,
    choice_faults,
    first,
    unknown_fields,
    word_faults,
)
from toolcrib.apps.naming import package_faults
from toolcrib.interfaces import AppType
from toolcrib.model import HARDWARE, Json, JsonObject, Level, Requirement

# Characters of a name.
LONGEST_NAME = 200
# Characters of a URL.
LONGEST_URL = 2_048
MOST_REQUIREMENTS = 50
MOST_PERMISSIONS = 100

_FIELDS = ("name", "publicUrl", "appType", "hardwareRequirements", "permissions")
_WORD = re.compile(r"[A-Z][A-Z0-9_]{0,49}")


def app_faults(package: str, body: Json) -> tuple[DefinitionFault, ...]:
    """Return the faults of an app registration, at most MOST_FAULTS."""
    return first(_faults(package, body))


def requirements(body: JsonObject) -> tuple[Requirement, ...]:
    """Parse the hardware requirements of a valid registration."""
    given: list[dict[str, Any]] = body.get("hardwareRequirements") or []
    return tuple(
        Requirement(type=each["type"], level=each["level"], description=each.get("description") or "")
        for each in given
    )


def warnings(body: JsonObject) -> tuple[str, ...]:
    """Return warnings for a valid registration, with their consequences."""
    found: list[str] = []
    for place, each in enumerate(requirements(body)):
        if each.type not in HARDWARE:
            path = f"hardwareRequirements[{place}].type"
            comes = "no device can run this app" if each.level == "REQUIRED" else "it is never there"
            found.append(f"{path}: {each.type} is no kind of hardware we know, so {comes}")
    return tuple(found)


def _faults(package: str, body: Json) -> Iterator[DefinitionFault]:
    yield from package_faults(package, "package")
    if not isinstance(body, Mapping):
        yield DefinitionFault("body", "must be an object")
        return
    app = cast("JsonObject", body)
    for name in app:
        if name not in _FIELDS:
            yield DefinitionFault(name, f"is not allowed here; known: {', '.join(_FIELDS)}")
    yield from word_faults(app.get("name"), "name", most=LONGEST_NAME)
    if app.get("publicUrl") is not None:
        yield from url_faults(app["publicUrl"], "publicUrl")
    if "appType" in app:
        yield from choice_faults(app["appType"], "appType", get_args(AppType))
    yield from _hardware_faults(app.get("hardwareRequirements", []), "hardwareRequirements")
    yield from _permission_faults(app.get("permissions", []), "permissions")


def url_faults(given: object, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of a URL; the address rules for egress are checked elsewhere."""
    found = tuple(word_faults(given, path, most=LONGEST_URL))
    yield from found
    if found or not isinstance(given, str):
        return
    try:
        parts = urlsplit(given)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        parts, usable = None, False
    if parts is None or not usable or given != given.strip():
        yield DefinitionFault(path, "must be an address such as https://app.example.com")
    elif parts.username is not None or "?" in given or "#" in given:
        # Rejected even if empty: the path that we append would become part of them.
        yield DefinitionFault(path, "must hold no user, no password, no '?' and no '#'")


def _hardware_faults(given: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(given, list):
        yield DefinitionFault(path, "must be an array")
        return
    needs = cast("list[Json]", given)
    if len(needs) > MOST_REQUIREMENTS:
        yield DefinitionFault(
            path, f"holds {len(needs)} requirements, at most {MOST_REQUIREMENTS} are allowed"
        )
        return
    for place, each in enumerate(needs):
        yield from _requirement_faults(each, at(path, place))


def _requirement_faults(given: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(given, Mapping):
        yield DefinitionFault(path, "must be an object")
        return
    need = cast("JsonObject", given)
    yield from unknown_fields(need, ("type", "level", "description"), path)
    if not isinstance(need.get("type"), str) or not _WORD.fullmatch(need["type"]):
        yield DefinitionFault(at(path, "type"), f"must be a word in capitals; known: {', '.join(HARDWARE)}")
    yield from choice_faults(need.get("level"), at(path, "level"), get_args(Level))
    if need.get("description") not in (None, ""):
        yield from word_faults(need["description"], at(path, "description"), most=500)


def _permission_faults(given: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(given, list) or len(cast("list[Json]", given)) > MOST_PERMISSIONS:
        yield DefinitionFault(path, f"must be an array of at most {MOST_PERMISSIONS} words")
        return
    for place, each in enumerate(cast("list[Json]", given)):
        if not isinstance(each, str) or not _WORD.fullmatch(each):
            yield DefinitionFault(at(path, place), "must be a word in capitals, such as MICROPHONE")
