"""Where tools come from: one file per kind of source."""
