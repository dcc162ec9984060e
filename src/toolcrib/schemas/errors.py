"""Error for rejected schemas."""


class InvalidSchema(ValueError):
    """A rejected schema. `path` is a pointer into it, `reason` states the cause and the remedy."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
