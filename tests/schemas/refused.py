"""How the tests here see a schema refused."""

from typing import Any

import pytest

from toolcrib.schemas import InvalidSchema, check

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def refused(schema: Any, **more: Any) -> InvalidSchema:
    """Check a schema that must not pass, and return what was said."""
    with pytest.raises(InvalidSchema) as caught:
        check(schema, **more)
    return caught.value
