"""Loads the config: merges file, environment and overlay into a validated document, or raises all faults."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from toolcrib.config.check import check
from toolcrib.config.consistency import conflicts, exposed, remarks
from toolcrib.config.error_report import ErrorReport
from toolcrib.config.errors import ConfigError, ConfigFault
from toolcrib.config.expand import escape, expand
from toolcrib.config.locations import home
from toolcrib.config.mcp import server_id
from toolcrib.config.overlay import CHANGEABLE, added, foreign, merge, shadowed, without_givers
from toolcrib.config.secrets import gather
from toolcrib.config.sections import ContextSection, Sections
from toolcrib.config.server_checks import unusable_hosts
from toolcrib.config.yaml import LARGEST, Reading, read
from toolcrib.model import AddressGiver, JsonObject

ADMIN_KEY = "TOOLCRIB_ADMIN_KEY"
OLD_ADMIN_KEY = "TOOLCRIB_ADMIN_KEY_OLD"
REREAD_SECONDS = 1.0
"""Seconds to retry a file that is being written, since many programs truncate a file before writing."""
_REREAD_PAUSE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Sections):
    """A validated config: its sections and their metadata."""

    secret_texts: frozenset[str] = field(default=frozenset(), repr=False)
    """Every secret text, for the redactor."""
    warnings: tuple[ConfigFault, ...] = ()
    source: Path | None = None
    raw: JsonObject = field(default_factory=dict[str, Any], repr=False)
    """File and overlay merged, with the file's references unexpanded, for `export`."""
    added: frozenset[str] = frozenset()
    """The ids of the servers under `mcp.servers` that were added at run time, so are not in the file."""
    url_givers: Mapping[str, AddressGiver] = field(default_factory=dict[str, AddressGiver])
    """The giver (kind of key) of each added server; missing for servers added before it was recorded."""
    file_is_empty: bool = False
    """The file has no content. Only then may a reload accept an empty file."""
    passing_admin_key: bool = False
    """The admin key was generated for this run only, so it must not protect stored data."""


def load(path: Path | None, *, env: Mapping[str, str], overlay: JsonObject | None = None) -> Document:
    """Load and validate a config file; None is the built-in default. Raises ConfigError with all faults."""
    if path is None:
        return _assembled(Reading(), "built-in default", env, overlay or {})
    return _loaded(path, _bytes(path), env, overlay or {})


def parse(text: str, name: str, env: Mapping[str, str]) -> Document:
    """Validate the text of a config."""
    return _assembled(read(text.encode(errors="surrogatepass"), name), name, env, {})


def again(
    document: Document, *, env: Mapping[str, str], overlay: JsonObject, in_force: Document | None = None
) -> Document:
    """Reload a document's file with this overlay; blocks while the file is being written.

    A document without a file is returned with the changes that the overlay may make.
    `in_force` is the document of the last reload.
    """
    if document.source is not None:
        may_be_empty = (in_force or document).file_is_empty
        content = _bytes_at_rest(document.source, may_be_empty=may_be_empty)
        return _loaded(document.source, content, env, overlay)
    if not overlay:
        return document
    read = _assembled(Reading(values=document.raw), "built-in default", env, overlay)
    settled: dict[str, Any] = {
        each.name: getattr(document, each.name)
        for each in fields(Sections)
        if each.name not in CHANGEABLE and each.name != "mcp"
    }
    servers = {**document.mcp.servers, **read.mcp.servers, **document.mcp.servers}
    return replace(
        read,
        **settled,
        contexts={**read.contexts, **document.contexts},
        overrides={**read.overrides, **document.overrides},
        pins={**read.pins, **document.pins},
        mcp=replace(document.mcp, servers=servers),
    )


def default_document(env: Mapping[str, str]) -> Document:
    """Return the config that applies without a file: the local tools, on a loopback address."""
    return load(None, env=env)


def listen(document: Document, *, host: str | None = None, port: int | None = None) -> Document:
    """Return the document with the bind address of the command line, revalidated for exposure."""
    server = document.server
    server = replace(server, host=host or server.host, port=server.port if port is None else port)
    moved = replace(document, server=server)
    faults = [
        ConfigFault(message=message, where=where, file="command line") for where, message in exposed(moved)
    ]
    if faults:
        raise ConfigError(faults)
    return moved


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or 'not a file'}"
    raise ConfigError([ConfigFault(message=reason, file=str(path))])


def _bytes_at_rest(path: Path, *, may_be_empty: bool) -> bytes:
    """Return the content of a stable file: a truncated one would remove every server.

    The file is stable if its size and modification time did not change during the read. After
    REREAD_SECONDS the last content is returned unless it is empty.
    """
    deadline = time.monotonic() + REREAD_SECONDS
    while True:
        before = _modified(path)
        content = _bytes(path)
        if (content or may_be_empty) and _modified(path) == before:
            return content
        if time.monotonic() > deadline:
            break
        time.sleep(_REREAD_PAUSE)
    if content or may_be_empty:
        return content
    raise ConfigError(
        [ConfigFault(message="is empty; write {} for a config without settings", file=str(path))]
    )


def _modified(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0  # `_bytes` reports it
    return found.st_mtime_ns, found.st_size


def _loaded(path: Path, content: bytes, env: Mapping[str, str], overlay: JsonObject) -> Document:
    document = _assembled(read(content, str(path)), str(path), env, overlay)
    return replace(document, source=path, file_is_empty=not content)


def _assembled(reading: Reading, name: str, env: Mapping[str, str], overlay: JsonObject) -> Document:
    if not reading.whole:
        raise ConfigError(reading.faults)
    overlay, givers = without_givers(overlay)
    report = ErrorReport(reading, name, overlay)
    if misplaced := list(foreign(overlay)):
        report.add(misplaced)
        overlay = {}
    written = {key: value for key, value in reading.values.items() if value is not None}
    expanded = expand(written, env)
    report.add(expanded.findings)
    merged = merge(expanded.values, overlay)
    sections, findings = check(merged)
    report.add(findings)
    sections = _completed(sections, merged, env)
    report.add(conflicts(sections, merged))
    report.add(unusable_hosts(sections, added(written, overlay)))
    report.close()
    servers = {server_id(name): server for name, server in sections.mcp.servers.items()}
    sections = replace(sections, mcp=replace(sections.mcp, servers=servers))
    known: dict[str, Any] = {each.name: getattr(sections, each.name) for each in fields(sections)}
    return Document(
        **known,
        secret_texts=gather(merged, expanded.taken) | _admin_keys(sections),
        warnings=report.located((*remarks(sections, merged), *shadowed(written, overlay))),
        raw=merge(written, escape(overlay)),
        added=frozenset(server_id(name) for name in added(written, overlay)),
        url_givers={server_id(name): giver for name, giver in givers.items()},
    )


def _completed(sections: Sections, merged: JsonObject, env: Mapping[str, str]) -> Sections:
    """Fill in defaults that depend on the environment: admin key, database path and default context."""
    auth = replace(
        sections.auth,
        admin_key=env.get(ADMIN_KEY) or sections.auth.admin_key,
        admin_key_old=env.get(OLD_ADMIN_KEY) or sections.auth.admin_key_old,
    )
    store = sections.store if "store" in merged else f"sqlite:///{home(env) / 'toolcrib.db'}"
    contexts = {"default": ContextSection(), **sections.contexts}
    return replace(sections, auth=auth, store=store, contexts=contexts)


def _admin_keys(sections: Sections) -> frozenset[str]:
    return frozenset(key for key in (sections.auth.admin_key, sections.auth.admin_key_old) if key)
