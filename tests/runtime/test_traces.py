"""Where spans go and which are sent: the file first, then the environment, and off where neither speaks."""

from typing import Any

import pytest

from toolcrib.config import parse
from toolcrib.observe import Redactor, Sampling
from toolcrib.runtime.traces import sampling_of, spans_of

pytestmark = pytest.mark.requirement("I3")

FILE = "traces: {endpoint: %s, sample: 0.5, headers: {x-key: k}, service_name: shop}"
BASE, WHOLE = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
EXPORTER, PROTOCOL = "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL"


def endpoint_of(text: str, env: dict[str, str]) -> str | None:
    """The endpoint of the exporter."""
    spans: Any = spans_of(parse(text, "toolcrib.yaml", {}), env, Redactor())
    if spans is None:
        return None
    spans.close()
    return spans._exporter._exporter._endpoint


@pytest.mark.parametrize(
    "text, env, endpoint",
    [
        ("", {}, None),
        ("traces: {sample: 0.5}", {}, None),
        (FILE % "http://h:4318", {}, "http://h:4318/v1/traces"),
        (FILE % "http://h:4318/", {}, "http://h:4318/v1/traces"),
        (FILE % "http://h/otlp/v1/traces", {}, "http://h/otlp/v1/traces"),
        (FILE % "http://h", {BASE: "http://other:4318"}, "http://h/v1/traces"),
        (FILE % "http://h", {"OTEL_SDK_DISABLED": "true"}, None),
        ("", {BASE: "http://h:4318"}, "http://h:4318/v1/traces"),
        ("", {BASE: "http://h:4318/base/"}, "http://h:4318/base/v1/traces"),
        ("", {BASE: "http://h:4318", WHOLE: "http://h/as-is"}, "http://h/as-is"),
        ("", {BASE: "http://h:4318", EXPORTER: "none"}, None),
        ("", {BASE: "http://h:4318", EXPORTER: "otlp,console"}, "http://h:4318/v1/traces"),
        ("", {BASE: "http://h:4318", PROTOCOL: "http/protobuf"}, "http://h:4318/v1/traces"),
        ("", {BASE: "http://h:4317", PROTOCOL: "grpc"}, None),
    ],
)
def test_file_overrides_environment(text: str, env: dict[str, str], endpoint: str | None) -> None:
    assert endpoint_of(text, env) == endpoint


@pytest.mark.parametrize(
    "sample, sampler, share, sampling",
    [
        (None, "", "", Sampling(1.0)),
        (0.5, "", "", Sampling(0.5)),
        (0.5, "always_on", "", Sampling(0.5, follow=False)),
        (None, "always_on", "", Sampling(1.0, follow=False)),
        (None, "always_off", "", Sampling(0.0, follow=False)),
        (None, "traceidratio", "0.25", Sampling(0.25, follow=False)),
        (None, "parentbased_always_on", "0.25", Sampling(1.0)),
        (None, "parentbased_always_off", "", Sampling(0.0)),
        (None, "parentbased_traceidratio", "0.25", Sampling(0.25)),
        (None, "parentbased_traceidratio", "seven", Sampling(1.0)),
        (None, "parentbased_traceidratio", "7", Sampling(1.0)),
    ],
)
def test_sampling_follows_the_same_precedence(
    sample: float | None, sampler: str, share: str, sampling: Sampling
) -> None:
    env = {"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": share}
    assert sampling_of(sample, env) == sampling


def test_traces_without_exporter_package_warn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolcrib.runtime.traces.installed", lambda: False)
    assert endpoint_of("", {BASE: "http://h:4318"}) is None
    assert "pip install 'toolcrib[otel]'" in caplog.text
