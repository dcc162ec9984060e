"""The ready-made tools."""
