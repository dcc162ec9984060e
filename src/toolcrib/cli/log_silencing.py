"""Keeps the log of a command's own gateway from the terminal, unless it is asked for."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager

from toolcrib.cli.error_output import DEBUG
from toolcrib.config import Document
from toolcrib.observe import Redactor
from toolcrib.observe.log import setup


@contextmanager
def quiet(document: Document) -> Generator[None]:
    """Say nothing of what is logged meanwhile; all of it, on standard error, with $TOOLCRIB_DEBUG."""
    if os.environ.get(DEBUG):
        log = setup("debug", None, Redactor(document.secret_texts), style="text")
        try:
            yield
        finally:
            log.close()
        return
    nowhere = logging.NullHandler()
    logging.getLogger().addHandler(nowhere)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(nowhere)
