"""Tools in a file: migrated where they stand, put back to the last byte."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apps.old_tools import MIGRATED, OLD_TOOLS, REMINDER
from toolcrib.apps.file_migration import UnmigratableFile, migrate, undo
from toolcrib.apps.migration import ORIGINAL_FIELD


def _spelled(document: Any, indent: int | None, ascii_only: bool, ending: str) -> str:
    return json.dumps(document, indent=indent, ensure_ascii=ascii_only).replace("\n", ending)


@pytest.mark.requirement("D12")
@given(
    OLD_TOOLS,
    st.sampled_from(["list", "object", "app"]),
    st.sampled_from([None, 0, 2, 4]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
def test_there_and_back_is_the_same_text_and_twice_is_once(
    tools: list[dict[str, Any]], shape: str, indent: int | None, ascii_only: bool, ending: str
) -> None:
    mixed = [*tools, {**MIGRATED, "name": "of the new shape"}]
    app = {"packageName": "com.example", "tools": mixed, "settings": [{"id": "x", "description": "y"}]}
    document = {"list": mixed, "object": {"tools": mixed}, "app": app}[shape]
    text = _spelled(document, indent, ascii_only, ending)
    once = migrate(text)
    assert len(once.changes) == len(tools)
    assert migrate(once.text) == type(once)(once.text, ())
    assert undo(once.text).text == text
    assert undo(text).text == text
    found = json.loads(once.text)
    new = found if shape == "list" else found["tools"]
    assert [tool["name"] for tool in new] == [*(tool["id"] for tool in tools), "of the new shape"]


@pytest.mark.requirement("D12")
def test_the_design_example_keeps_its_original_beside_it() -> None:
    text = '\ufeff{ "tools":[\n  ' + json.dumps(REMINDER) + ' ] , "name": "x"}\n'
    done = migrate(text)
    (tool,) = json.loads(done.text.removeprefix("\ufeff"))["tools"]
    assert json.loads(tool.pop(ORIGINAL_FIELD)) == REMINDER
    assert tool == MIGRATED
    (change,) = done.changes
    assert (change.path, change.before, change.after) == ("tools[0]", REMINDER, MIGRATED)
    back = undo(done.text)
    assert back.text == text
    assert (back.changes[0].before, back.changes[0].after) == (MIGRATED, REMINDER)


@pytest.mark.requirement("D12")
def test_restore_keeps_later_additions() -> None:
    done = json.loads(migrate(json.dumps([REMINDER])).text)
    back = undo(json.dumps([*done, {**MIGRATED, "name": "new"}]))
    assert [tool.get("id", tool.get("name")) for tool in json.loads(back.text)] == ["add_reminder", "new"]


@pytest.mark.requirement("D12")
@pytest.mark.parametrize(
    "text, path",
    [
        ("", "file"),
        ("[", "file"),
        ("[] []", "file"),
        ("[NaN]", "file"),
        ("[1e999]", "file"),
        ("[" * 100_000, "file"),
        ("3", "tools"),
        ("{}", "tools"),
        ('{"tools": {}}', "tools"),
        ('{"tools": [], "tools": []}', "tools"),
        (json.dumps([REMINDER, {"id": "x"}]), "tools[1].description"),
        (json.dumps([REMINDER, REMINDER]), "tools[1].id"),
        (json.dumps([MIGRATED, REMINDER]), "tools[1].id"),
        (json.dumps([{**REMINDER, "description": "\ud800"}]), "tools[0]"),
    ],
)
def test_unmigratable_value_is_refused_by_path(text: str, path: str) -> None:
    with pytest.raises(UnmigratableFile) as caught:
        migrate(text)
    assert [fault.path for fault in caught.value.faults] == [path]


@pytest.mark.parametrize("kept", [3, "{", '{"name": "x"}', "[]"])
def test_an_original_that_is_none_cannot_be_put_back(kept: Any) -> None:
    with pytest.raises(UnmigratableFile) as caught:
        undo(json.dumps([{**MIGRATED, ORIGINAL_FIELD: kept}]))
    assert caught.value.faults[0].path == f'tools[0]["{ORIGINAL_FIELD}"]'


def test_non_objects_are_left_unchanged() -> None:
    assert migrate("[3, null, []]").changes == ()
    assert undo("[3, null, []]").changes == ()
