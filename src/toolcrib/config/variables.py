"""Translates `${…}` placeholders of other MCP hosts to environment references, or to plain text."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from toolcrib.config.errors import Where
from toolcrib.model import JsonObject
from toolcrib.names import snake

Say = Callable[[Where, str], None]

_WRITTEN = re.compile(r"\$\{(?P<inner>[^{}]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LIKE_OURS = re.compile(r"(?P<name>[A-Z_][A-Z0-9_]*)(?::-[^{}]*)?")
_LONGEST_SAID = 200

_HOME = "HOME"
_OF_EDITORS = re.compile(
    r"(?:workspaceFolder|workspaceFolderBasename|workspaceRoot|cwd|pathSeparator|/)|(?:file|config|command):.*"
)


class Variables:
    """Translates the placeholders of one file; each variable is reported once."""

    def __init__(self, inputs: Any, say: Say) -> None:
        listed = cast("Iterable[Any]", inputs if isinstance(inputs, list) else ())
        self._inputs = {each["id"]: each for each in listed if _is_input(each)}
        self._say = say
        self._names: dict[str, str] = {}
        self._taken: dict[str, int] = {}
        self._said: set[str] = set()

    def translate(self, where: Where, text: str) -> str:
        """Return the text with its placeholders in the syntax of our config."""
        if "${" not in text:
            return text
        return _WRITTEN.sub(lambda match: self._translated(where, match), text)

    def _translated(self, where: Where, match: re.Match[str]) -> str:
        inner = match["inner"]
        kind, _, name = (inner or "").partition(":")
        if kind == "env" and _NAME.fullmatch(name):
            return f"${{{name}}}"
        if kind == "input" and name:
            return self._asked(where, name)
        if inner == "userHome":
            self._once(where, inner, f"names the user's home folder, which is taken from ${{{_HOME}}}")
            return f"${{{_HOME}}}"
        ours = _LIKE_OURS.fullmatch(inner or "")
        if ours is not None:
            meant = f"write $${{{ours['name']}}} where just that text is meant"
            self._once(
                where, ours["name"], f"takes the variable {ours['name']} from the environment; {meant}"
            )
            return match[0]
        if inner is not None:
            self._once(where, inner, _kept(inner))
        return f"${match[0]}"

    def _asked(self, where: Where, asked: str) -> str:
        """Replace an input, for which the host prompts its user, by an environment variable."""
        about: JsonObject = self._inputs.get(asked, {})
        name = self._names.get(asked) or self._variable(asked)
        self._names[asked] = name
        default, description = about.get("default"), about.get("description")
        said = f": {description[:_LONGEST_SAID]}" if isinstance(description, str) and description else ""
        self._once(where, name, f"asks for {asked[:80]!r}; set the variable {name} instead{said}")
        usable = isinstance(default, str) and default and not set(default) & set("{}\n")
        return f"${{{name}:-{default}}}" if usable else f"${{{name}}}"

    def _variable(self, asked: str) -> str:
        name = snake(asked).upper() or "INPUT"
        name = f"INPUT_{name}" if name[0].isdigit() else name
        free = name
        while free in self._taken:
            self._taken[name] += 1
            free = f"{name}_{self._taken[name]}"
        self._taken[free] = 1
        return free

    def _once(self, where: Where, about: str, message: str) -> None:
        if about not in self._said:
            self._said.add(about)
            self._say(where, message)


def _is_input(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(cast("JsonObject", entry).get("id"), str)


def _kept(inner: str) -> str:
    if _OF_EDITORS.fullmatch(inner):
        return f"holds ${{{inner[:80]}}}, which only an editor knows; write what it stands for"
    return "holds a ${…} that means nothing here, and is kept as plain text"
