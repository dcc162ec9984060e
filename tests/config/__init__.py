"""The config, from bytes to a checked document."""
