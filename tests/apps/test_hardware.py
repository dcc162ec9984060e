"""Which app runs on which device: the rule, its messages, and what describes a device."""

from typing import Any

import pytest

from tests.texts import matches
from toolcrib.apps.hardware import (
    NO_HARDWARE,
    PROFILES,
    InvalidDevice,
    check_compatibility,
    missing_clause,
    parse_device,
    summary,
)
from toolcrib.model import HARDWARE, Level, Requirement

NOTHING: tuple[Requirement, ...] = ()
THE_DESIGNS_G1 = {
    "modelName": "Even Realities G1",
    "hasDisplay": True,
    "hasCamera": False,
    "hasMicrophone": True,
    "hasSpeaker": True,
}
"""As the design describes it. The real one has no speaker."""


def needs(*kinds: str, level: Level = "REQUIRED") -> tuple[Requirement, ...]:
    return tuple(Requirement(type=kind, level=level) for kind in kinds)


REMINDER, PHOTO, MUSIC = NOTHING, needs("CAMERA"), needs("SPEAKER")
NAVIGATION = needs("CAMERA", "GPS")


@pytest.mark.requirement("D4")
@pytest.mark.parametrize(
    "app, on_the_designs, on_the_real",
    [(REMINDER, True, True), (PHOTO, False, False), (MUSIC, True, False), (NAVIGATION, False, False)],
    ids=["reminder", "photo", "music", "navigation"],
)
def test_the_designs_example_line_by_line_and_on_the_real_device(
    app: tuple[Requirement, ...], on_the_designs: bool, on_the_real: bool
) -> None:
    assert check_compatibility(app, parse_device(THE_DESIGNS_G1)).is_compatible is on_the_designs
    assert check_compatibility(app, parse_device("Even Realities G1")).is_compatible is on_the_real


@pytest.mark.requirement("D4")
def test_no_requirements_are_met_by_any_device_and_by_none() -> None:
    for found in (check_compatibility(NOTHING, None), check_compatibility(NOTHING, parse_device("None"))):
        assert found.is_compatible
        assert found.warnings == ()


@pytest.mark.requirement("D4")
def test_app_runs_without_device_with_unknown_capabilities() -> None:
    found = check_compatibility(PHOTO, None)
    assert found.is_compatible
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("No device is connected")


@pytest.mark.requirement("D4")
def test_optional_hardware_never_excludes() -> None:
    optional = needs("CAMERA", "GPS", level="OPTIONAL")
    found = check_compatibility((*optional, *needs("DISPLAY")), parse_device("G1"))
    assert found.is_compatible
    assert (found.missing_required, found.missing_optional) == ((), optional)
    assert found.message == ""


@pytest.mark.requirement("D4")
def test_phone_microphone_is_used_by_default() -> None:
    z100 = parse_device("Vuzix Z100")
    hears = needs("MICROPHONE")
    assert check_compatibility(hears, z100).is_compatible
    assert check_compatibility(hears, z100, phone_microphone=False).missing_required == hears
    assert check_compatibility(hears, parse_device("G1"), phone_microphone=False).is_compatible


@pytest.mark.requirement("D4")
def test_unknown_hardware_is_missing_on_every_device() -> None:
    for model in PROFILES:
        assert not check_compatibility(needs("GPS"), parse_device(model)).is_compatible
        assert not check_compatibility(needs("EXIST"), parse_device(model)).is_compatible


@pytest.mark.requirement("D4")
def test_message_names_the_missing_hardware() -> None:
    g1 = parse_device("Even Realities G1")
    one, two = check_compatibility(PHOTO, g1), check_compatibility(needs("CAMERA", "WIFI", "GPS"), g1)
    assert matches("apps", "message names the missing hardware", one.message)
    assert matches("apps", "message names the missing hardware 2", two.message)
    assert matches(
        "apps",
        "message names the missing hardware 3",
        missing_clause(needs("IMU"), parse_device({"hasDisplay": True})),
    )


def test_hardware_is_exported_in_wire_names() -> None:
    asked = (*needs("CAMERA"), Requirement(type="LIGHT", level="OPTIONAL", description="A torch"))
    assert check_compatibility(asked, parse_device("G1")).as_json() == {
        "isCompatible": False,
        "missingRequired": [{"type": "CAMERA", "level": "REQUIRED"}],
        "missingOptional": [{"type": "LIGHT", "level": "OPTIONAL", "description": "A torch"}],
        "warnings": [],
        "message": "This app needs a camera, which Even Realities G1 does not have.",
    }


def test_required_hardware_as_a_sentence() -> None:
    optional = needs("LIGHT", "BUTTON", level="OPTIONAL")
    assert summary(NOTHING) == ""
    assert summary(needs("CAMERA", "CAMERA")) == "Needs a camera."
    assert matches("apps", "required hardware as a sentence", summary(optional))
    assert matches("apps", "required hardware as a sentence 2", summary((*needs("CAMERA"), *optional)))


@pytest.mark.requirement("D4")
def test_an_unknown_model_has_nothing_and_keeps_its_name() -> None:
    found = parse_device("Glasses of 2031")
    assert (found.model, found.has) == ("Glasses of 2031", frozenset())
    assert found.capabilities == {**NO_HARDWARE, "modelName": "Glasses of 2031"}


def test_unlisted_capabilities_are_absent() -> None:
    found = parse_device({"modelName": "Mine", "hasIMU": True, "imu": None, "hasWifi": True, "hasOta": True})
    assert (found.model, found.has) == ("Mine", {"IMU", "WIFI"})
    assert (found.capabilities["hasOta"], found.capabilities["hasCamera"]) == (True, False)
    assert parse_device(found.capabilities) == found


def test_an_object_with_a_name_alone_is_that_model() -> None:
    assert parse_device({"modelName": "G1"}) == parse_device("Even Realities G1")
    assert parse_device({}).has == frozenset()


def test_every_kind_of_hardware_can_be_described() -> None:
    flags = {f"has{'IMU' if kind == 'IMU' else kind.capitalize()}": True for kind in HARDWARE}
    assert parse_device(flags).has == set(HARDWARE)


@pytest.mark.parametrize(
    "given, path",
    [
        ("", "device"),
        (" ", "device"),
        ("x" * 201, "device"),
        ("a\u200bb", "device"),
        (3, "device"),
        ({"modelName": 3}, "device.modelName"),
        ({"modelName": "x" * 201, "hasCamera": True}, "device.modelName"),
        ({"hasCamera": "yes"}, "device.hasCamera"),
        ({"hasIMU": 1}, "device.hasIMU"),
        ({"hasCamera": True, "camera": True}, "device.camera"),
        ({"camera": {"hasHDR": True}}, "device.camera"),
        ({"more": "x" * 70_000}, "device"),
        ({"more": {1, 2}}, "device"),
    ],
)
def test_invalid_device_is_refused_by_path(given: Any, path: str) -> None:
    with pytest.raises(InvalidDevice) as caught:
        parse_device(given)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")


def test_deep_nesting_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"more": deep}
    with pytest.raises(InvalidDevice, match="levels of nesting"):
        parse_device(deep)
