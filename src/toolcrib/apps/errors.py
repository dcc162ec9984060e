"""What is raised where a message between the gateway and an app cannot be understood."""


class InvalidMessage(ValueError):
    """A message that is not one; `path` says where the fault is."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message
