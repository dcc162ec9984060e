"""The gateway's own tools."""
