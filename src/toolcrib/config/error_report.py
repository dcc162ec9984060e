"""Collects validation findings and locates each one: file, line and column."""

from collections.abc import Iterable

from toolcrib.config.document_tree import holds
from toolcrib.config.errors import ConfigError, ConfigFault, FilePosition, Finding, Where
from toolcrib.config.yaml import Reading
from toolcrib.model import JsonObject

OVERLAY = "run-time overlay"


class ErrorReport:
    """All faults of one config, collected before they are raised as one error."""

    def __init__(self, reading: Reading, name: str, overlay: JsonObject) -> None:
        self._faults = list(reading.faults)
        self._places = reading.places
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
            if way in self._places:
                return ConfigFault(message=message, where=where, file=self._name, place=self._places[way])
            if holds(self._overlay, way):
                return ConfigFault(message=message, where=where, file=OVERLAY)
        return ConfigFault(message=message, where=where, file=self._name)


def _sorted(faults: Iterable[ConfigFault]) -> tuple[ConfigFault, ...]:
    return tuple(sorted(faults, key=lambda fault: (fault.place or FilePosition(0, 0), fault.path)))
