"""Fits a schema to what a reader understands, and says what is lost on the way."""

from toolcrib.model import JsonObject
from toolcrib.schemas.fit_dialect import Dialect, Fitted
from toolcrib.schemas.fit_ledger import Ledger
from toolcrib.schemas.fit_original import Original
from toolcrib.schemas.fit_plain import Plain
from toolcrib.schemas.fit_read import Reader
from toolcrib.schemas.fit_write import Writer

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
