"""Helper for schemas that must be refused."""

from typing import Any

import pytest

from toolcrib.schemas import InvalidSchema, check

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def refused(schema: Any, **more: Any) -> InvalidSchema:
    """Check a schema that must be refused; return the error."""
    with pytest.raises(InvalidSchema) as caught:
        check(schema, **more)
    return caught.value
