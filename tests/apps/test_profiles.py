"""Device profiles: each has the described hardware and is found by its names."""

import pytest

from toolcrib.apps.hardware import NO_HARDWARE, PROFILES, parse_device, profile

HAS = {
    "Even Realities G1": {"DISPLAY", "MICROPHONE", "IMU"},
    "Even Realities G2": {"DISPLAY", "MICROPHONE", "IMU", "BUTTON"},
    "Mentra Live": {"CAMERA", "MICROPHONE", "SPEAKER", "IMU", "BUTTON", "LIGHT", "WIFI"},
    "Vuzix Z100": {"DISPLAY"},
    "Mentra Mach1": {"DISPLAY"},
    "Mentra Display": {"DISPLAY", "MICROPHONE"},
    "NIMO": {"DISPLAY", "MICROPHONE", "IMU", "BUTTON"},
    "Simulated Glasses": {"DISPLAY", "MICROPHONE", "SPEAKER", "BUTTON"},
    "None": set[str](),
}
LINES = {"Even Realities G1": 5, "Even Realities G2": 5, "Vuzix Z100": 7, "NIMO": 5, "Simulated Glasses": 7}


@pytest.mark.requirement("D4")
def test_device_profiles_match_the_hardware() -> None:
    assert {model: set(parse_device(model).has) for model in PROFILES} == HAS


@pytest.mark.requirement("D4")
def test_displays_have_their_real_size() -> None:
    for model, lines in LINES.items():
        assert PROFILES[model]["display"]["maxTextLines"] == lines, model
    g1 = PROFILES["Even Realities G1"]["display"]
    assert (g1["count"], g1["resolution"], g1["color"]) == (2, {"width": 640, "height": 200}, "green")
    assert PROFILES["Mentra Mach1"]["display"] == PROFILES["Vuzix Z100"]["display"]


def test_profiles_share_fields_and_describe_only_what_exists() -> None:
    for model, said in PROFILES.items():
        assert said.keys() == NO_HARDWARE.keys(), model
        assert said["modelName"] == model
        assert said["power"] == {"hasExternalBattery": False}
        assert parse_device(dict(said)) == parse_device(model)


@pytest.mark.parametrize(
    "name, model",
    [
        ("even realities g1", "Even Realities G1"),
        ("Even G1", "Even Realities G1"),
        ("even_realities_g2", "Even Realities G2"),
        ("vuzix-z100", "Vuzix Z100"),
        ("Mach1", "Mentra Mach1"),
        ("Mentra Nex", "Mentra Display"),
        ("  nimo ", "NIMO"),
    ],
)
def test_device_is_found_by_all_its_names(name: str, model: str) -> None:
    assert profile(name) is PROFILES[model]
    assert parse_device(name).model == model


def test_unknown_devices_have_no_profile() -> None:
    assert profile("Brilliant Frame") is None
