"""What is wrong with a schema that is refused."""


class InvalidSchema(ValueError):
    """A schema that is not taken in. `path` points into it, `reason` says why and what to do."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
