"""Files stay short, functions shorter, names plain: over everything we write, without exceptions."""

from pathlib import Path

import pytest

from tests.gates import shape
from tests.gates.tree import ROOT, name_of, python_files


def test_every_file_keeps_the_shape() -> None:
    found = [
        f"{name_of(path)}:{fault}"
        for path in python_files()
        for fault in shape.faults(path.relative_to(ROOT), path.read_text())
    ]
    assert not found, "\n".join(found)


def test_public_class_names_are_unique() -> None:
    found = shape.repeated_classes((name_of(path), path.read_text()) for path in python_files("src"))
    assert not found, "\n".join(found)


def test_function_complexity_is_bounded() -> None:
    found = shape.tangled(python_files())
    assert not found, "\n".join(found)


GOOD = '"""A cache of parsed headers."""\n'


@pytest.mark.parametrize(
    "name, text, complaint",
    [
        ("cache.py", "x = 1\n", "does not open with a sentence"),
        ("cache.py", '"""Cache"""\n', "does not open with a sentence"),
        ("src/toolcrib/cache/__init__.py", "", "does not open with a sentence"),
        ("cache.py", GOOD + "x = 1\n" * shape.FILE_LINES, "501 lines"),
        ("cache.py", GOOD + "def f():\n" + "    x = 1\n" * shape.FUNCTION_LINES, "f has 41 lines"),
        ("cache.py", GOOD + "def f(a, b, c, d, e, g): ...\n", "takes 6 positional"),
        (
            "cache.py",
            GOOD + "class A:\n    @staticmethod\n    def f(a, b, c, d, e, g): ...\n",
            "takes 6 positional",
        ),
        ("cache.py", GOOD + "class KeyManager: ...\n", "`manager` in KeyManager"),
        ("cache.py", GOOD + "async def base_url(): ...\n", "`base` in base_url"),
        ("utils.py", GOOD, "`utils` in the path"),
        ("helpers/cache.py", GOOD, "`helpers` in the path"),
    ],
)
def test_the_shape_gate_can_fail(name: str, text: str, complaint: str) -> None:
    assert complaint in "\n".join(shape.faults(Path(name), text))


def test_the_class_name_gate_can_fail() -> None:
    files = [
        ("a.py", "class Session: ...\nclass _Own: ...\n"),
        ("b.py", "class Session: ...\nclass _Own: ...\n"),
    ]
    assert shape.repeated_classes(files) == ["Session: a.py, b.py"]


def test_what_keeps_the_rules_passes() -> None:
    text = GOOD + "class Database:\n    def f(self, a, b, c, d, e, *, g, h): ...\n"
    assert shape.faults(Path("store/database.py"), text) == []


def test_the_complexity_gate_can_fail_and_takes_no_excuse(tmp_path: Path) -> None:
    branches = "".join(f"    if x == {n}:\n        return {n}\n" for n in range(shape.COMPLEXITY))
    file = tmp_path / "knot.py"
    file.write_text(f"def knot(x):  # noqa: C901\n{branches}")
    assert any("knot" in fault for fault in shape.tangled([file]))
