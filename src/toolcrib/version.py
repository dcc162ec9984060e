"""The version of the package, defined only here."""

VERSION = "0.1.0"
