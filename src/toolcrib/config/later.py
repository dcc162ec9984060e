"""Settings that are validated but not implemented yet, so that files for a later version are accepted."""

from dataclasses import dataclass, field
from typing import Annotated

from toolcrib.config.value_types import BLANK, Text, WebAddress

LATER: tuple[tuple[str, ...], ...] = (("openapi",),)
"""Path patterns of unimplemented settings; `*` matches any key, and lists are traversed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApi:
    """An HTTP API with an OpenAPI document."""

    document: Annotated[Text, "file or address of the OpenAPI document"] = field(repr=False)
    base_url: Annotated[WebAddress | None, BLANK, "address of the API, in place of the document's own"] = (
        field(default=None, repr=False)
    )
