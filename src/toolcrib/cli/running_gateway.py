"""A gateway that runs until it is told to stop, with its log."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from toolcrib.cli import startup_gc
from toolcrib.config import Document
from toolcrib.observe import Redactor
from toolcrib.observe.log import setup
from toolcrib.runtime import Runtime, build


@asynccontextmanager
async def running_gateway(document: Document, *, demo: bool) -> AsyncGenerator[Runtime]:
    """Build the gateway, write its log where the config says, and run it for as long as the block lasts."""
    redactor = Redactor(document.secret_texts)
    settings = document.log
    file = None if settings.file is None else Path(settings.file)
    log = setup(settings.level, file, redactor, arguments=settings.arguments)
    try:
        async with build(document, env=os.environ, demo=demo, journal_to=log, redactor=redactor) as house:
            startup_gc.done()
            yield house
    finally:
        log.close()
