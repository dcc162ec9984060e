"""Fits a schema to what a reader understands, and says what is lost on the way."""

from toolcrib.model import JsonObject
from toolcrib.schemas.fitting.dialect import Dialect, Fitted
from toolcrib.schemas.fitting.ledger import Ledger
from toolcrib.schemas.fitting.original import Original
from toolcrib.schemas.fitting.plain import Plain
from toolcrib.schemas.fitting.read import Reader
from toolcrib.schemas.fitting.write import Writer

__all__ = ["Dialect", "Fitted", "fit"]


def fit(schema: JsonObject, dialect: Dialect) -> Fitted:
    """Return a schema a reader of this dialect takes; without losses it accepts exactly the same values.

    The schema is one of arguments, as `check` lets it in. It is not changed, and may share parts with what
    comes back.
    """
    original, ledger = Original(dict(schema)), Ledger()
    if dialect.plain:
        return Fitted(Plain(dialect, original, ledger).arguments(), ledger.losses)
    shape = Reader(original, ledger).arguments()
    return Fitted(Writer(dialect, original, ledger).arguments(shape), ledger.losses)
