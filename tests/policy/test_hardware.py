"""The rule that an app's tools need the hardware their app requires."""

import pytest

from tests.texts import matches
from toolcrib.apps.hardware import parse_device
from toolcrib.model import Level, Requirement, Tool
from toolcrib.policy import HardwareRule
from toolcrib.testing import a_caller, a_tool

G1, LIVE, Z100 = (parse_device(model) for model in ("Even Realities G1", "Mentra Live", "Vuzix Z100"))


def of_an_app(*kinds: str, level: Level = "REQUIRED") -> Tool:
    hardware = tuple(Requirement(type=kind, level=level) for kind in kinds)
    return a_tool("com.example.photo:shoot", source="com.example.photo", family="app", hardware=hardware)


@pytest.mark.requirement("D3", "D4")
def test_missing_hardware_hides_the_tool() -> None:
    rule = HardwareRule()
    reason = rule.why_not(of_an_app("CAMERA"), a_caller(device=G1))
    assert reason is not None
    assert reason.effect == "hide"
    assert matches("errors", "tool that needs a camera", reason.message)
    assert rule.why_not(of_an_app("CAMERA"), a_caller(device=LIVE)) is None


@pytest.mark.requirement("D4")
def test_optional_hardware_or_no_device_hides_nothing() -> None:
    rule = HardwareRule()
    assert rule.why_not(of_an_app("CAMERA", "GPS"), a_caller()) is None
    assert rule.why_not(a_tool(), a_caller(device=Z100)) is None
    assert rule.why_not(of_an_app("CAMERA", level="OPTIONAL"), a_caller(device=Z100)) is None


@pytest.mark.requirement("D4")
def test_phone_microphone_is_optional() -> None:
    hears = of_an_app("MICROPHONE")
    assert HardwareRule().why_not(hears, a_caller(device=Z100)) is None
    assert HardwareRule(phone_microphone=False).why_not(hears, a_caller(device=Z100)) is not None


def test_audience_depends_on_capabilities_not_device() -> None:
    rule = HardwareRule()
    assert rule.audience(a_caller(device=Z100)) == rule.audience(
        a_caller(device=parse_device("Mentra Mach1"))
    )
    assert len({rule.audience(a_caller(device=each)) for each in (None, parse_device("None"), G1)}) == 3
