"""App registrations are accepted completely, or all faults are reported."""

from typing import Any

import pytest

from toolcrib.apps.definition import app_faults, requirements, warnings
from toolcrib.model import Requirement

APP: dict[str, Any] = {
    "name": "Photos",
    "publicUrl": "https://photos.example.com/app",
    "appType": "standard",
    "hardwareRequirements": [
        {"type": "CAMERA", "level": "REQUIRED", "description": "To take pictures"},
        {"type": "LIGHT", "level": "OPTIONAL"},
    ],
    "permissions": ["CAMERA", "LOCATION"],
}


def paths(package: str = "com.example.photos", **more: Any) -> list[str]:
    return [fault.path for fault in app_faults(package, APP | more)]


@pytest.mark.requirement("D1")
def test_a_whole_app_is_taken() -> None:
    assert paths() == []
    assert app_faults("com.example", {"name": "Least"}) == ()
    assert paths(publicUrl=None, permissions=[], hardwareRequirements=[]) == []
    assert requirements(APP) == (
        Requirement(type="CAMERA", level="REQUIRED", description="To take pictures"),
        Requirement(type="LIGHT", level="OPTIONAL"),
    )
    assert requirements({"name": "Least"}) == ()


@pytest.mark.requirement("D1")
@pytest.mark.parametrize("package", ["", "com:example", "Com.Example", "x" * 64, "a/b", "ä", "local", "crib"])
def test_ambiguous_package_name_is_refused(package: str) -> None:
    assert paths(package) == ["package"]


@pytest.mark.requirement("D1")
@pytest.mark.parametrize(
    "field, value, path",
    [
        ("name", None, "name"),
        ("name", "", "name"),
        ("name", "x" * 201, "name"),
        ("name", "a\nb", "name"),
        ("publicUrl", 3, "publicUrl"),
        ("publicUrl", "photos.example.com", "publicUrl"),
        ("publicUrl", "ftp://x", "publicUrl"),
        ("publicUrl", "http://", "publicUrl"),
        ("publicUrl", "http://x:99999", "publicUrl"),
        ("publicUrl", "http://u:p@x", "publicUrl"),
        ("publicUrl", "http://x/?a=b", "publicUrl"),
        ("publicUrl", "http://x/anything?", "publicUrl"),
        ("publicUrl", "http://x/anything#", "publicUrl"),
        ("publicUrl", " http://x", "publicUrl"),
        ("publicUrl", "http://" + "x" * 3000, "publicUrl"),
        ("appType", "foreground", "appType"),
        ("appType", None, "appType"),
        ("hardwareRequirements", {}, "hardwareRequirements"),
        ("hardwareRequirements", [3] * 51, "hardwareRequirements"),
        ("hardwareRequirements", ["CAMERA"], "hardwareRequirements[0]"),
        ("hardwareRequirements", [{"type": "CAMERA"}], "hardwareRequirements[0].level"),
        ("hardwareRequirements", [{"type": "camera", "level": "REQUIRED"}], "hardwareRequirements[0].type"),
        (
            "hardwareRequirements",
            [{"type": "CAMERA", "level": "OPTIONAL", "count": 2}],
            "hardwareRequirements[0].count",
        ),
        (
            "hardwareRequirements",
            [{"type": "CAMERA", "level": "OPTIONAL", "description": 3}],
            "hardwareRequirements[0].description",
        ),
        (
            "hardwareRequirements",
            [{"type": "CAMERA", "level": "OPTIONAL", "description": False}],
            "hardwareRequirements[0].description",
        ),
        ("permissions", "CAMERA", "permissions"),
        ("permissions", ["A"] * 101, "permissions"),
        ("permissions", ["CAMERA", "camera"], "permissions[1]"),
        ("apiKey", "x", "apiKey"),
    ],
)
def test_each_fault_is_named_by_its_path(field: str, value: Any, path: str) -> None:
    assert paths(**{field: value}) == [path]


def test_an_app_is_an_object() -> None:
    assert [fault.path for fault in app_faults("com.example", [])] == ["body"]


@pytest.mark.requirement("D4")
def test_hardware_we_do_not_know_is_taken_with_a_warning() -> None:
    body = APP | {
        "hardwareRequirements": [
            {"type": "CAMERA", "level": "REQUIRED"},
            {"type": "GPS", "level": "REQUIRED"},
            {"type": "LIDAR", "level": "OPTIONAL"},
        ]
    }
    assert app_faults("com.example", body) == ()
    required, optional = warnings(body)
    assert required.startswith("hardwareRequirements[1].type: GPS")
    assert "no device can run this app" in required
    assert optional.startswith("hardwareRequirements[2].type: LIDAR")
    assert warnings(APP) == ()
