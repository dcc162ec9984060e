"""Imports MCP client configs (`mcp.json`, Claude Desktop, VS Code) as server sections."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from toolcrib.config.checks import check, conflicts, folded_id
from toolcrib.config.errors import ConfigError, ConfigFault, FilePosition, Finding, Where, format_path
from toolcrib.config.load import dump
from toolcrib.config.mcp import RESERVED_SERVER_IDS, server_id
from toolcrib.config.secrets import REFERENCE, mask, names_secret
from toolcrib.config.yaml import read, rewrite, text_values, value_at
from toolcrib.model import JsonObject
from toolcrib.names import snake_case

# --- JSONC parser (JSON with comments and trailing commas): bounded size, depth; errors have a line ---

MAX_IMPORT_BYTES = 1 << 20
MAX_IMPORT_DEPTH = 64

# An unterminated string or comment matches to the end of the text, so that matching takes linear time.
_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_BRACKET = re.compile(rf"{_STRING}|([\[{{])|([\]}}])", re.DOTALL)
_NOT_A_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """The parsed value, and the keys that an object has more than once, where the last one wins."""

    value: Any
    repeated: tuple[str, ...]


def read_json(data: bytes, name: str) -> ParsedJson:
    """Parse one document. Raises ConfigError with the line of the error."""
    if len(data) > MAX_IMPORT_BYTES:
        _refuse(name, f"is larger than {MAX_IMPORT_BYTES // 1024} KiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(name, "is not UTF-8 text; save it as UTF-8", data.count(b"\n", 0, error.start))
    plain = _LAST_COMMA.sub(_blank_out, _COMMENT.sub(_blank_out, text))
    _check_depth(plain, name)
    return _parsed(plain, name)


def _blank_out(match: re.Match[str]) -> str:
    """Return a string unchanged, and blank out all else except newlines, so that line numbers stay valid."""
    return match[1] or _NOT_A_NEWLINE.sub(" ", match[0])


def _check_depth(text: str, name: str) -> None:
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += bool(match[1]) - bool(match[2])
        if depth > MAX_IMPORT_DEPTH:
            _refuse(
                name,
                f"is nested more than {MAX_IMPORT_DEPTH} levels deep",
                text.count("\n", 0, match.start()),
            )


def _parsed(text: str, name: str) -> ParsedJson:
    repeated: dict[str, None] = {}

    def entries(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                repeated[key] = None
            found[key] = value
        return found

    try:
        value = json.loads(text, object_pairs_hook=entries, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        _refuse(name, f"is not valid JSON: {error.msg}", error.lineno - 1)
    except UnicodeEncodeError:
        _refuse(name, r"is not valid JSON: it contains an unpaired surrogate, such as \ud800")
    except ValueError:
        _refuse(name, "is not valid JSON: it contains NaN, Infinity or a number with too many digits")
    return ParsedJson(value, tuple(repeated))


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _refuse(name: str, message: str, lines_before: int | None = None) -> NoReturn:
    position = None if lines_before is None else FilePosition(lines_before + 1, 1)
    raise ConfigError([ConfigFault(message=message, file=name, position=position)])


# --- Translates `${…}` placeholders of other MCP hosts to environment references, or to plain text ---

AddWarning = Callable[[Where, str], None]

_PLACEHOLDER = re.compile(r"\$\{(?P<inner>[^{}]*)\}|\$\{")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OUR_SYNTAX = re.compile(r"(?P<name>[A-Z_][A-Z0-9_]*)(?::-[^{}]*)?")
_MAX_DESCRIPTION_CHARACTERS = 200

_HOME_VARIABLE = "HOME"
_EDITOR_VARIABLE = re.compile(
    r"(?:workspaceFolder|workspaceFolderBasename|workspaceRoot|cwd|pathSeparator|/)|(?:file|config|command):.*"
)


class PlaceholderTranslator:
    """Translates the placeholders of one file; each variable is reported once."""

    def __init__(self, inputs: Any, warn: AddWarning) -> None:
        listed = cast("Iterable[Any]", inputs if isinstance(inputs, list) else ())
        self._inputs = {entry["id"]: entry for entry in listed if _is_input(entry)}
        self._warn = warn
        self._names: dict[str, str] = {}
        self._taken: dict[str, int] = {}
        self._warned: set[str] = set()

    def translate(self, where: Where, text: str) -> str:
        """Return the text with its placeholders in the syntax of our config."""
        if "${" not in text:
            return text
        return _PLACEHOLDER.sub(lambda match: self._translated(where, match), text)

    def _translated(self, where: Where, match: re.Match[str]) -> str:
        inner = match["inner"]
        kind, _, name = (inner or "").partition(":")
        if kind == "env" and _VARIABLE_NAME.fullmatch(name):
            return f"${{{name}}}"
        if kind == "input" and name:
            return self._input(where, name)
        if inner == "userHome":
            self._warn_once(
                where, inner, f"refers to the user's home folder, which becomes ${{{_HOME_VARIABLE}}}"
            )
            return f"${{{_HOME_VARIABLE}}}"
        ours = _OUR_SYNTAX.fullmatch(inner or "")
        if ours is not None:
            literal = f"write $${{{ours['name']}}} for the literal text"
            self._warn_once(
                where, ours["name"], f"takes the variable {ours['name']} from the environment; {literal}"
            )
            return match[0]
        if inner is not None:
            self._warn_once(where, inner, _untranslated_warning(inner))
        return f"${match[0]}"

    def _input(self, where: Where, input_id: str) -> str:
        """Return a reference to an environment variable for an input, which the host asks its user for."""
        properties: JsonObject = self._inputs.get(input_id, {})
        name = self._names.get(input_id) or self._variable(input_id)
        self._names[input_id] = name
        default, description = properties.get("default"), properties.get("description")
        note = (
            f": {description[:_MAX_DESCRIPTION_CHARACTERS]}"
            if description and isinstance(description, str)
            else ""
        )
        self._warn_once(where, name, f"asks for {input_id[:80]!r}; set the variable {name} instead{note}")
        usable = isinstance(default, str) and default and not set(default) & set("{}\n")
        return f"${{{name}:-{default}}}" if usable else f"${{{name}}}"

    def _variable(self, input_id: str) -> str:
        name = snake_case(input_id).upper() or "INPUT"
        name = f"INPUT_{name}" if name[0].isdigit() else name
        free = name
        while free in self._taken:
            self._taken[name] += 1
            free = f"{name}_{self._taken[name]}"
        self._taken[free] = 1
        return free

    def _warn_once(self, where: Where, key: str, message: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            self._warn(where, message)


def _is_input(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(cast("JsonObject", entry).get("id"), str)


def _untranslated_warning(inner: str) -> str:
    if _EDITOR_VARIABLE.fullmatch(inner):
        return f"contains ${{{inner[:80]}}}, which only an editor can resolve; write its value"
    return "contains an unknown ${…}, which is kept as literal text"


# --- Imports MCP server files of other hosts; settings that cannot be converted are reported as warnings ---

MAX_IMPORTED_SERVERS = 500
_MAX_ID_CHARACTERS = 63

_TRANSPORTS = {"stdio": "stdio", "http": "http", "sse": "sse", "streamablehttp": "http"}
_URL_KEYS = ("url", "serverUrl", "httpUrl")
_STDIO_KEYS = frozenset({"command", "args", "env", "cwd"})
_IGNORED_SETTINGS = {
    "envFile": "is ignored; put its variables under env, or into the gateway's environment",
    "alwaysAllow": "is ignored; contexts and overrides control access to tools",
    "autoApprove": "is ignored; contexts and overrides control access to tools",
    "timeout": "is ignored, since its unit differs between hosts; set defaults.timeout_ms",
    "gallery": "is ignored; it is for the editor only",
    "dev": "is ignored; it is for the editor only",
    **dict.fromkeys(
        ("tools", "includeTools", "excludeTools"), "is ignored; list the tools to expose under tools"
    ),
    **dict.fromkeys((*_URL_KEYS, "headers"), "is ignored, since the server uses another transport"),
    **dict.fromkeys(_STDIO_KEYS, "is ignored, since the server is reached by its URL"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedServers:
    """The converted servers for `mcp.servers`, and the warnings of the conversion."""

    servers: dict[str, JsonObject]
    warnings: tuple[str, ...]

    @property
    def private(self) -> bool:
        """Whether the servers may contain secrets."""
        document = _document_of(self.servers)
        passed = any(server.get("env") or server.get("headers") for server in self.servers.values())
        return passed or mask(document) != document


def import_servers(data: bytes, name: str) -> ImportedServers:
    """Convert the file of another host. Raises ConfigError if it is invalid or has no servers."""
    found = read_json(data, name)
    warnings: list[str] = []

    def warn(where: Where, message: str) -> None:
        warnings.append(str(ConfigFault(message=message, where=where, file=name)))

    for key in found.repeated:
        warn((), f"has the key {key[:80]!r} twice in one object; the last one is used")
    groups = dict(_server_groups(found.value, name, warn))
    taken: dict[str, _ConvertedServer] = {}
    for where, servers in groups.items():
        variables = PlaceholderTranslator(value_at(found.value, (*where[:-1], "inputs")), warn)
        for title, given in servers.items():
            server = _ServerConverter((*where, title), given, variables, warn).converted()
            if server is not None:
                taken[_unique_id(title, taken, where, warn)] = _ConvertedServer((*where, title), server)
    sound = _without_invalid(taken, warn)
    notes = (str(ConfigFault(message=message, where=path)) for path, message in _literal_secrets(sound))
    return ImportedServers(servers=sound, warnings=(*warnings, *notes))


def servers_file(servers: Mapping[str, JsonObject]) -> str:
    """Serialize servers as a config file. Raises ConfigError if the file would exceed the size limit."""
    text = dump(_document_of(servers))
    if faults := read(text.encode(), "the imported config").faults:
        raise ConfigError(faults)
    return text


@dataclass(frozen=True, slots=True)
class _ConvertedServer:
    where: Where
    server: dict[str, Any]


def _document_of(servers: Mapping[str, JsonObject]) -> dict[str, Any]:
    return {"mcp": {"servers": dict(servers)}}


def _server_groups(
    document: Any, name: str, warn: AddWarning
) -> Iterator[tuple[tuple[str, ...], JsonObject]]:
    """Yield the server mappings of a file with their paths; warn about other top-level keys."""
    paths = (("mcpServers",), ("servers",), ("mcp", "servers"))
    found = {way: value_at(document, way) for way in paths if isinstance(value_at(document, way), Mapping)}
    if not found:
        message = "contains no MCP servers: it has neither mcpServers nor servers"
        raise ConfigError([ConfigFault(message=message, file=name)])
    if sum(map(len, found.values())) > MAX_IMPORTED_SERVERS:
        raise ConfigError(
            [ConfigFault(message=f"contains more than {MAX_IMPORTED_SERVERS} servers", file=name)]
        )
    known = {*(way[0] for way in found), "inputs", "$schema"}
    if others := [key for key in document if key not in known]:
        listed = ", ".join(key[:80] for key in others[:10])
        warn((), f"has other settings, which are ignored: {listed}{' …' if len(others) > 10 else ''}")
    yield from found.items()


def _unique_id(title: str, taken: Mapping[str, Any], where: Where, warn: AddWarning) -> str:
    """Return a unique, valid server id close to the name in the file; warn if it differs."""
    chosen = (server_id(title) or "server")[:_MAX_ID_CHARACTERS].rstrip("._-")
    chosen = f"mcp_{chosen}" if chosen in RESERVED_SERVER_IDS else chosen
    start, number, used = chosen[: _MAX_ID_CHARACTERS - 4], 1, {folded_id(other) for other in taken}
    while folded_id(chosen) in used:
        number += 1
        chosen = f"{start}_{number}"
    if chosen != title:
        warn((*where, title), f"is renamed to {chosen}")
    return chosen


class _ServerConverter:
    """Converts one server of another host, setting by setting."""

    def __init__(self, where: Where, given: Any, variables: PlaceholderTranslator, warn: AddWarning) -> None:
        self._where, self._settings = where, given
        self._translate, self._warn = variables.translate, warn

    def converted(self) -> dict[str, Any] | None:
        """Return the server in our config format; None, with a warning, if it cannot be used."""
        if not isinstance(self._settings, Mapping):
            return self._skip("is not a mapping of settings")
        transport = self._transport()
        if transport is None:
            return None
        server: dict[str, Any] = {"transport": transport}
        if not self._enabled():
            server["enabled"] = False
        if transport == "stdio":
            reach, known = self._program(), _STDIO_KEYS
        else:
            reach, known = self._address(), frozenset({self._first_key(*_URL_KEYS), "headers"})
        self._warn_of_others({*known, self._first_key("type", "transport"), "disabled", "enabled"})
        return None if reach is None else {**server, **reach}

    def _skip(self, reason: str) -> None:
        self._warn(self._where, f"is skipped: it {reason}")

    def _transport(self) -> str | None:
        kind = self._first_key("type", "transport")
        if kind:
            value = self._settings[kind]
            word = value.lower().replace("-", "").replace("_", "") if isinstance(value, str) else ""
            if word not in _TRANSPORTS:
                return self._skip("has a type other than stdio, http and sse")
            return _TRANSPORTS[word]
        if self._settings.get("command"):
            return "stdio"
        key = self._first_key(*_URL_KEYS)
        if not key:
            return self._skip("has neither a command nor a url")
        path = str(self._settings[key]).partition("?")[0].rstrip("/")
        return "sse" if key != "httpUrl" and path.endswith("/sse") else "http"

    def _enabled(self) -> bool:
        for key in ("disabled", "enabled"):
            if not isinstance(self._settings.get(key), bool | None):
                self._warn((*self._where, key), "is neither true nor false, and is ignored")
        return self._settings.get("disabled") is not True and self._settings.get("enabled") is not False

    def _program(self) -> dict[str, Any] | None:
        command, extra = self._settings.get("command"), self._settings.get("args")
        if isinstance(command, str) and " " in command.strip() and not extra:
            message = "contains a space and is used as one program name; write a list to pass arguments"
            self._warn((*self._where, "command"), message)
        words = self._texts("command", command if isinstance(command, list) else [command])
        arguments = self._texts("args", [] if extra is None else extra)
        if words is None or arguments is None:
            return self._skip("has a command or args other than text")
        program: dict[str, Any] = {"command": [*words, *arguments]}
        if (cwd := self._settings.get("cwd")) is not None and (text := self._text(("cwd",), cwd)):
            program["cwd"] = text
        return program | self._pairs("env")

    def _address(self) -> dict[str, Any] | None:
        key = self._first_key(*_URL_KEYS)
        if not key:
            return self._skip("has no url")
        url = self._text((key,), self._settings[key])
        return None if url is None else {"url": url} | self._pairs("headers")

    def _first_key(self, *keys: str) -> str:
        """Return the first of these keys with a non-empty value; empty if there is none."""
        return next((key for key in keys if self._settings.get(key)), "")

    def _texts(self, key: str, items: Any) -> list[str] | None:
        if not isinstance(items, list):
            return None
        texts = [self._text((key, index), item) for index, item in enumerate(cast("list[Any]", items))]
        return None if None in texts else cast("list[str]", texts)

    def _pairs(self, key: str) -> dict[str, dict[str, str]]:
        given = self._settings.get(key)
        if given is not None and not isinstance(given, Mapping):
            self._warn((*self._where, key), "is not a mapping, and is ignored")
        entries = cast("JsonObject", given if isinstance(given, Mapping) else {})
        found = {name: self._text((key, name), value) for name, value in entries.items()}
        texts = {name: text for name, text in found.items() if text is not None}
        return {key: texts} if texts else {}

    def _text(self, keys: Where, value: Any) -> str | None:
        """Return a value as text; lenient hosts accept numbers and booleans too, so these are converted."""
        where = (*self._where, *keys)
        if isinstance(value, bool | int | float):
            return json.dumps(value)
        if not isinstance(value, str):
            self._warn(where, "is not text, and is ignored")
            return None
        return self._translate(where, value)

    def _warn_of_others(self, known: Collection[str]) -> None:
        for key, value in cast("JsonObject", self._settings).items():
            if key not in known and value not in (None, False, "", [], {}):
                self._warn((*self._where, key), _IGNORED_SETTINGS.get(key, "is unknown, and is ignored"))


def _without_invalid(taken: dict[str, _ConvertedServer], warn: AddWarning) -> dict[str, JsonObject]:
    """Remove all that our own validation would reject, with warnings."""
    servers = {key: converted.server for key, converted in taken.items()}
    while findings := _findings(servers):
        for (_mcp, _servers, key, *rest), advice in findings:
            message = advice.partition(";")[0]
            where, server = taken[str(key)].where, servers.get(str(key), {})
            if len(rest) > 1 and rest[0] in ("env", "headers"):
                if server.get(rest[0], {}).pop(rest[1], None) is not None:
                    warn((*where, *rest), f"is ignored: it {message}")
            elif servers.pop(str(key), None) is not None:
                warn(where, f"is skipped: {format_path(tuple(rest)) or 'its name'} {message}")
    return {key: {k: v for k, v in server.items() if v != {}} for key, server in servers.items()}


def _findings(servers: Mapping[str, JsonObject]) -> list[Finding]:
    document = rewrite(_document_of(servers), _with_sample_values)
    sections, findings = check(document)
    return findings or list(conflicts(sections, document))


def _with_sample_values(where: Where, text: str) -> str:
    """Expand references with placeholders for validation, since the environment is not known yet."""

    def filled(match: re.Match[str]) -> str:
        if match["name"] is None:
            return "${"
        return match["default"] or ("https://1" if where[-1] == "url" and match.start() == 0 else "1")

    return REFERENCE.sub(filled, text)


def _literal_secrets(servers: Mapping[str, JsonObject]) -> Iterator[Finding]:
    document = _document_of(servers)
    for (where, text), (_where, covered) in zip(
        text_values(document), text_values(mask(document)), strict=True
    ):
        passed = where[3] in ("env", "headers")
        if text != covered and (not passed or names_secret(str(where[4]))):
            yield where, "contains a secret in plain text; use ${NAME} to read it from the environment"
