"""Loads a config: find the file, merge the overlay, expand variables, validate."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

import yaml

from toolcrib.config.checks import (
    SERVERS_PATH,
    check,
    conflicts,
    exposure_faults,
    folded_id,
    ineffective_settings,
    unusable_hosts,
)
from toolcrib.config.errors import ConfigError, ConfigFault, FilePosition, Finding, Where
from toolcrib.config.mcp import server_id
from toolcrib.config.secrets import escape, expand, find_secrets, mask
from toolcrib.config.sections import ContextSection, Sections
from toolcrib.config.yaml import (
    MAX_CONFIG_BYTES,
    MAX_CONFIG_DEPTH,
    Reading,
    depth,
    has_path,
    parse_scalar,
    read,
    value_at,
)
from toolcrib.interfaces import GIVERS
from toolcrib.model import AddressGiver, JsonObject

# --- Collects validation findings and locates each one: file, line and column ---

OVERLAY = "run-time overlay"


class ErrorReport:
    """All faults of one config, collected before they are raised as one error."""

    def __init__(self, reading: Reading, name: str, overlay: JsonObject) -> None:
        self._faults = list(reading.faults)
        self._positions = reading.positions
        self._name = name
        self._overlay = overlay

    def add(self, findings: Iterable[Finding]) -> None:
        """Add the findings of one check, except at paths with earlier faults, which are their cause."""
        known = {fault.where for fault in self._faults}
        self._faults += [fault for fault in self.located(findings) if fault.where not in known]

    def located(self, findings: Iterable[Finding]) -> tuple[ConfigFault, ...]:
        """Return findings with file and line, sorted by position."""
        return _sorted(self._located(where, message) for where, message in findings)

    def close(self) -> None:
        """Raise ConfigError with all faults, if there are any."""
        if self._faults:
            raise ConfigError(_sorted(self._faults))

    def _located(self, where: Where, message: str) -> ConfigFault:
        """Locate a finding by its nearest existing ancestor, since a missing setting has no position."""
        for way in (where[:length] for length in range(len(where), 0, -1)):
            if way in self._positions:
                return ConfigFault(
                    message=message, where=where, file=self._name, position=self._positions[way]
                )
            if has_path(self._overlay, way):
                return ConfigFault(message=message, where=where, file=OVERLAY)
        return ConfigFault(message=message, where=where, file=self._name)


def _sorted(faults: Iterable[ConfigFault]) -> tuple[ConfigFault, ...]:
    return tuple(sorted(faults, key=lambda fault: (fault.position or FilePosition(0, 0), fault.path)))


# --- Paths of the config file and of the state folder ---

CONFIG = "TOOLCRIB_CONFIG"
HOME = "TOOLCRIB_HOME"


def find(explicit: str | None, env: Mapping[str, str]) -> Path | None:
    """Return the config path: the explicit one, `$TOOLCRIB_CONFIG`, `./toolcrib.yaml`, or None.

    The first two are returned even if the file does not exist: reading it reports that.
    """
    if explicit:
        return Path(explicit)
    if env.get(CONFIG):
        return Path(env[CONFIG])
    default_path = Path("toolcrib.yaml")
    return default_path if default_path.exists() else None


def home(env: Mapping[str, str]) -> Path:
    """Return the folder of the database and the generated admin key: `$TOOLCRIB_HOME` or `./.toolcrib`."""
    return Path(env.get(HOME) or ".toolcrib")


# --- The run-time overlay: changes in config format, merged under the file, which wins ---

# Unquoted, YAML readers normalize these to plain line breaks.
_OTHER_BREAKS = re.compile("[\x85\u2028\u2029]")
RUNTIME_SECTIONS = frozenset({"contexts", "overrides", "pins"})


def split_givers(overlay: JsonObject) -> tuple[JsonObject, Mapping[str, AddressGiver]]:
    """Split a stored overlay into its settings and the giver of each server."""
    givers = overlay.get(GIVERS)
    if not isinstance(givers, Mapping):
        return overlay, {}
    settings = {key: value for key, value in overlay.items() if key != GIVERS}
    return settings, cast("Mapping[str, AddressGiver]", givers)


def merge(file: JsonObject, overlay: JsonObject) -> dict[str, Any]:
    """Deep-merge the overlay under the file. On a conflict the file wins; a list is not merged.

    Nor is a server: a run-time change must not alter how a server of the file is started.
    """
    if servers := _servers(overlay):
        rest = {name: servers[name] for name in added_servers(file, overlay)}
        overlay = {**overlay, "mcp": {**overlay["mcp"], "servers": rest}}
    merged = _merged_under(file, overlay)
    in_file = file.get("overrides")
    if isinstance(in_file, Mapping) and isinstance(overlay.get("overrides"), Mapping):
        # Later overrides take precedence over earlier ones, so those of the file come last.
        overrides = cast("JsonObject", merged["overrides"])
        first = {pattern: override for pattern, override in overrides.items() if pattern not in in_file}
        merged["overrides"] = {**first, **overrides}
    return merged


def _merged_under(file: JsonObject, overlay: JsonObject) -> dict[str, Any]:
    merged = dict(file)
    for key, value in overlay.items():
        if key not in file:
            merged[key] = value
        elif isinstance(file[key], Mapping) and isinstance(value, Mapping):
            merged[key] = _merged_under(file[key], cast("JsonObject", value))
    return merged


def added_servers(file: JsonObject, overlay: JsonObject) -> tuple[str, ...]:
    """Return the names of the servers that are only in the overlay."""
    known = {folded_id(name) for name in _servers(file)}
    return tuple(name for name in _servers(overlay) if folded_id(name) not in known)


def shadowed_servers(file: JsonObject, overlay: JsonObject) -> Iterator[Finding]:
    """Yield a warning for each server of the file that shadows one of the overlay."""
    known = {folded_id(name) for name in _servers(overlay)}
    for name in _servers(file):
        if folded_id(name) in known:
            yield (*SERVERS_PATH, name), "was also added at run time; the settings of the file are used"


def _servers(document: JsonObject) -> JsonObject:
    servers = value_at(document, SERVERS_PATH)
    return cast("JsonObject", servers) if isinstance(servers, Mapping) else {}


def forbidden_settings(overlay: JsonObject) -> Iterator[Finding]:
    """Yield the settings that an overlay must not contain: only the config file may set them."""
    if depth(overlay, MAX_CONFIG_DEPTH + 1) > MAX_CONFIG_DEPTH:
        yield (), f"is nested more than {MAX_CONFIG_DEPTH} levels deep"
        return
    for key, value in overlay.items():
        if key in RUNTIME_SECTIONS:
            continue
        inner = cast("JsonObject", value) if key == "mcp" and isinstance(value, Mapping) else {"": value}
        for part in inner:
            if part != "servers":
                yield (
                    (key, part) if part else (key,),
                    "cannot be changed at run time; change it in the config file",
                )


def export(raw: JsonObject) -> str:
    """Serialize a merged document as a config file: references unexpanded, other secrets masked."""
    return dump(mask(raw))


def dump(document: JsonObject) -> str:
    """Serialize a document as a config file, without masking."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """YAML dumper for our own parser: no aliases, and quotes around text that would parse as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    ambiguous = not isinstance(parse_scalar(text), str) or _OTHER_BREAKS.search(text)
    style = '"' if ambiguous else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)  # pyright: ignore[reportUnknownMemberType]


_Dumper.add_representer(str, _represent_text)


# --- Loading: merges file, environment and overlay into a validated document, or raises all faults ---

ADMIN_KEY = "TOOLCRIB_ADMIN_KEY"
OLD_ADMIN_KEY = "TOOLCRIB_ADMIN_KEY_OLD"
REREAD_SECONDS = 1.0
"""Seconds to retry a file that is being written, since many programs truncate a file before writing."""
_REREAD_INTERVAL_SECONDS = 0.02


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
    ephemeral_admin_key: bool = False
    """The admin key was generated for this run only, so it must not protect stored data."""


def load(path: Path | None, *, env: Mapping[str, str], overlay: JsonObject | None = None) -> Document:
    """Load and validate a config file; None is the built-in default. Raises ConfigError with all faults."""
    if path is None:
        return _validated(Reading(), "built-in default", env, overlay or {})
    return _loaded(path, _read_file(path), env, overlay or {})


def parse(text: str, name: str, env: Mapping[str, str]) -> Document:
    """Validate the text of a config."""
    return _validated(read(text.encode(errors="surrogatepass"), name), name, env, {})


def reread(
    document: Document, *, env: Mapping[str, str], overlay: JsonObject, in_force: Document | None = None
) -> Document:
    """Reload a document's file with this overlay; blocks while the file is being written.

    A document without a file is returned with the changes that the overlay may make.
    `in_force` is the document of the last reload.
    """
    if document.source is not None:
        may_be_empty = (in_force or document).file_is_empty
        content = _read_stable_file(document.source, may_be_empty=may_be_empty)
        return _loaded(document.source, content, env, overlay)
    if not overlay:
        return document
    merged = _validated(Reading(values=document.raw), "built-in default", env, overlay)
    unchanged: dict[str, Any] = {
        setting.name: getattr(document, setting.name)
        for setting in fields(Sections)
        if setting.name not in RUNTIME_SECTIONS and setting.name != "mcp"
    }
    servers = {**document.mcp.servers, **merged.mcp.servers, **document.mcp.servers}
    return replace(
        merged,
        **unchanged,
        contexts={**merged.contexts, **document.contexts},
        overrides={**merged.overrides, **document.overrides},
        pins={**merged.pins, **document.pins},
        mcp=replace(document.mcp, servers=servers),
    )


def default_document(env: Mapping[str, str]) -> Document:
    """Return the config that applies without a file: the local tools, on a loopback address."""
    return load(None, env=env)


def with_bind_address(document: Document, *, host: str | None = None, port: int | None = None) -> Document:
    """Return the document with the bind address of the command line, revalidated for exposure."""
    server = document.server
    server = replace(server, host=host or server.host, port=server.port if port is None else port)
    moved = replace(document, server=server)
    faults = [
        ConfigFault(message=message, where=where, file="command line")
        for where, message in exposure_faults(moved)
    ]
    if faults:
        raise ConfigError(faults)
    return moved


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or 'not a file'}"
    raise ConfigError([ConfigFault(message=reason, file=str(path))])


def _read_stable_file(path: Path, *, may_be_empty: bool) -> bytes:
    """Return the content of a stable file: a truncated one would remove every server.

    The file is stable if its size and modification time did not change during the read. After
    REREAD_SECONDS the last content is returned unless it is empty.
    """
    deadline = time.monotonic() + REREAD_SECONDS
    while True:
        before = _file_version(path)
        content = _read_file(path)
        if (content or may_be_empty) and _file_version(path) == before:
            return content
        if time.monotonic() > deadline:
            break
        time.sleep(_REREAD_INTERVAL_SECONDS)
    if content or may_be_empty:
        return content
    raise ConfigError(
        [ConfigFault(message="is empty; write {} for a config without settings", file=str(path))]
    )


def _file_version(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0  # `_bytes` reports it
    return status.st_mtime_ns, status.st_size


def _loaded(path: Path, content: bytes, env: Mapping[str, str], overlay: JsonObject) -> Document:
    document = _validated(read(content, str(path)), str(path), env, overlay)
    return replace(document, source=path, file_is_empty=not content)


def _validated(reading: Reading, name: str, env: Mapping[str, str], overlay: JsonObject) -> Document:
    if not reading.complete:
        raise ConfigError(reading.faults)
    overlay, givers = split_givers(overlay)
    report = ErrorReport(reading, name, overlay)
    if forbidden := list(forbidden_settings(overlay)):
        report.add(forbidden)
        overlay = {}
    written = {key: value for key, value in reading.values.items() if value is not None}
    expanded = expand(written, env)
    report.add(expanded.findings)
    merged = merge(expanded.values, overlay)
    sections, findings = check(merged)
    report.add(findings)
    sections = _with_defaults(sections, merged, env)
    report.add(conflicts(sections, merged))
    report.add(unusable_hosts(sections, added_servers(written, overlay)))
    report.close()
    servers = {server_id(name): server for name, server in sections.mcp.servers.items()}
    sections = replace(sections, mcp=replace(sections.mcp, servers=servers))
    admin_keys = (sections.auth.admin_key, sections.auth.admin_key_old)
    known: dict[str, Any] = {field.name: getattr(sections, field.name) for field in fields(sections)}
    return Document(
        **known,
        secret_texts=find_secrets(merged, expanded.taken) | {key for key in admin_keys if key},
        warnings=report.located(
            (*ineffective_settings(sections, merged), *shadowed_servers(written, overlay))
        ),
        raw=merge(written, escape(overlay)),
        added=frozenset(server_id(name) for name in added_servers(written, overlay)),
        url_givers={server_id(name): giver for name, giver in givers.items()},
    )


def _with_defaults(sections: Sections, merged: JsonObject, env: Mapping[str, str]) -> Sections:
    """Fill in defaults that depend on the environment: admin key, database path and default context."""
    auth = replace(
        sections.auth,
        admin_key=env.get(ADMIN_KEY) or sections.auth.admin_key,
        admin_key_old=env.get(OLD_ADMIN_KEY) or sections.auth.admin_key_old,
    )
    store = sections.store if "store" in merged else f"sqlite:///{home(env) / 'toolcrib.db'}"
    contexts = {"default": ContextSection(), **sections.contexts}
    return replace(sections, auth=auth, store=store, contexts=contexts)
