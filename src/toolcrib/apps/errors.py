"""Error for messages between the gateway and an app that cannot be parsed."""


class InvalidMessage(ValueError):
    """A malformed message; `path` locates the fault."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message
