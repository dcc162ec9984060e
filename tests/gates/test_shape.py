"""Size, naming and complexity rules hold for every file, without exceptions."""

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
