"""The version of the package, in the one place everything else reads it from."""

VERSION = "0.1.0"
