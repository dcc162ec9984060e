"""Mini-app protocol without I/O: tool definitions, messages, signatures, and device capabilities."""
