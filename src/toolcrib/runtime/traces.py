"""Builds the OpenTelemetry exporter from the config, else from the `OTEL_*` environment variables."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from toolcrib.config import Document
from toolcrib.observe import INSTALL_COMMAND, Redactor, Sampling, Spans, installed

log = logging.getLogger(__name__)

_PATH = "/v1/traces"
_PROTOCOL = "http/protobuf"


@asynccontextmanager
async def exporting(
    document: Document, env: Mapping[str, str], redactor: Redactor
) -> AsyncGenerator[Spans | None, None]:
    """Export spans until the block ends, then flush the rest; None if tracing is not configured."""
    spans = spans_of(document, env, redactor)
    try:
        yield spans
    finally:
        if spans is not None:
            await spans.aclose()


def spans_of(document: Document, env: Mapping[str, str], redactor: Redactor) -> Spans | None:
    """Return the sink that exports spans; None if tracing is disabled, unconfigured or not installed."""
    settings = document.traces
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    endpoint = _whole(settings.endpoint) if settings.endpoint is not None else _by_environment(env)
    if endpoint is None:
        return None
    if not installed():
        log.warning("traces are asked for, but nothing that exports them is installed: %s", INSTALL_COMMAND)
        return None
    from toolcrib.observe.otlp import OtlpExporter, OtlpTarget

    target = OtlpTarget(
        endpoint=endpoint, headers=settings.headers or None, service_name=settings.service_name
    )
    return Spans(OtlpExporter(target, redactor), sampling_of(settings.sample, env))


def sampling_of(sample: float | None, env: Mapping[str, str]) -> Sampling:
    """Return the sampling ratio: from the config, else from OTEL_TRACES_SAMPLER."""
    sampler = env.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    follow = sampler not in ("always_on", "always_off", "traceidratio")
    if sample is not None:
        return Sampling(sample, follow)
    if sampler.endswith("always_off"):
        return Sampling(0.0, follow)
    if sampler.endswith("traceidratio"):
        return Sampling(_share(env.get("OTEL_TRACES_SAMPLER_ARG", "")), follow)
    return Sampling(1.0, follow)


def _by_environment(env: Mapping[str, str]) -> str | None:
    if "otlp" not in (env.get("OTEL_TRACES_EXPORTER") or "otlp").split(","):
        return None
    base, whole = env.get("OTEL_EXPORTER_OTLP_ENDPOINT"), env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    endpoint = whole or (f"{base.removesuffix('/')}{_PATH}" if base else None)
    said = env.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or env.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if endpoint is not None and said and said != _PROTOCOL:
        log.warning(
            "no traces are exported: the environment asks for %s, and only %s is spoken", said, _PROTOCOL
        )
        return None
    return endpoint


def _whole(endpoint: str) -> str:
    """Return the collector's URL, with the default path `/v1/traces` if it has none."""
    parts = urlsplit(endpoint)
    return endpoint if parts.path.strip("/") else parts._replace(path=_PATH).geturl()


def _share(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 1.0
