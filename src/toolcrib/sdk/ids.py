"""Branded ids: `str` subtypes with a pattern, so that kinds of ids cannot be confused."""

import re
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import CoreSchema, core_schema

from toolcrib.model import JsonObject

_OPAQUE = r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"
_PREFIX = re.compile(r"[a-z][a-z0-9]*")


class BrandedId(str):
    """A kind of id: `class CardId(BrandedId, prefix="card", description="Which card.")`.

    Its values look like `card_123`. A `pattern` of its own may be given in place of the prefix; without
    either it accepts the ids of other systems: letters, digits and `._:@-`, at most 128 characters.
    """

    __slots__ = ()

    pattern: ClassVar[str] = ""
    """JSON Schema `pattern` of the values; empty for BrandedId itself, which has no values."""
    description: ClassVar[str] = ""

    def __init_subclass__(
        cls, *, prefix: str = "", pattern: str = "", description: str = "", **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        if prefix and pattern:
            raise TypeError(f"{cls.__name__} has a prefix and a pattern: give one of them")
        if prefix and not _PREFIX.fullmatch(prefix):
            raise TypeError(f"the prefix {prefix!r} of {cls.__name__} is not of the form card or deck2")
        cls.pattern = f"^{prefix}_[A-Za-z0-9_-]{{1,64}}$" if prefix else pattern or cls.pattern or _OPAQUE
        re.compile(cls.pattern)
        cls.description = description or cls.description

    def __new__(cls, value: str) -> Self:
        """Create an id from text; raises ValueError if it does not match the pattern."""
        if not cls.pattern:
            raise TypeError(_NO_KIND)
        # JSON Schema's `$` matches only the end; Python's also matches before a final line break.
        if not re.search(cls.pattern, value) or value.endswith("\n"):
            raise ValueError(f"{value!r} is no {cls.__name__}: it must match {cls.pattern}")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not cls.pattern:
            raise PydanticSchemaGenerationError(_NO_KIND)
        return core_schema.no_info_after_validator_function(
            cls._trusted, core_schema.str_schema(pattern=cls.pattern)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonObject:
        said = {"description": cls.description} if cls.description else {}
        return {**handler(schema), **said}

    @classmethod
    def _trusted(cls, value: str) -> Self:
        """Create an id from validated text."""
        return str.__new__(cls, value)


_NO_KIND = 'BrandedId is no kind of id itself: class CardId(BrandedId, prefix="card", description="…")'
