"""What this version reads and checks but does not serve yet, so that a file written for it stays valid."""

from dataclasses import dataclass, field
from typing import Annotated

from toolcrib.config.value_types import BLANK, Text, WebAddress

LATER: tuple[tuple[str, ...], ...] = (("openapi",),)
"""What is not served yet; `*` stands for any key, and a list is looked through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApi:
    """One HTTP API that describes itself."""

    document: Annotated[Text, "file or address of the OpenAPI document"] = field(repr=False)
    base_url: Annotated[WebAddress | None, BLANK, "address of the API, in place of the document's own"] = (
        field(default=None, repr=False)
    )
