"""`toolcrib call`, in its own process."""

import io
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.texts import matches

TOOLS = '''
from toolcrib import ToolContext, create_tool

@create_tool(tags=["test"])
async def explode(text: str) -> str:
    """Raises an error that holds a word nobody may see."""
    raise RuntimeError("the word is " + text)

@create_tool(tags=["test"])
async def add_line(text: str) -> int:
    """Adds a line to a file and says how many there are."""
    with open("lines.txt", "a") as file:
        file.write(text + "\\n")
    with open("lines.txt") as file:
        return len(file.readlines())

@create_tool(tags=["test"])
async def who_calls(ctx: ToolContext) -> str:
    """Says for which user it was called."""
    return f"{ctx.user_id}\\x1b[31m"
'''


@pytest.fixture
def own_tools(tmp_path: Path) -> None:
    (tmp_path / "cli_call_tools.py").write_text(TOOLS)
    (tmp_path / "toolcrib.yaml").write_text("functions: [cli_call_tools]")


def test_the_sentence_and_then_the_data(shell: Shell) -> None:
    done = shell("call", "add-numbers", "numbers=1", "numbers=2.5", "--demo")
    assert (done.code, done.err) == (0, "")
    assert done.out == 'That makes 3.5.\n{\n  "total": 3.5\n}\n'


def test_one_json_object(shell: Shell) -> None:
    done = shell("call", "demo:count_words", '{"text": "to be or not"}', "--demo")
    assert (done.code, done.out.splitlines()[0]) == (0, "It has 4 words.")


def test_arguments_from_standard_input(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"text": "one two"}'))
    assert shell("call", "count-words", "-", "--demo").out.startswith("It has 2 words.")


def test_json_is_the_whole_result(shell: Shell) -> None:
    done = shell("call", "add-numbers", "numbers=[1,2]", "--demo", "--json")
    assert done.code == 0
    assert done.json["data"] == {"total": 3.0}
    assert done.json["success"] is True
    assert len(done.json["agentHints"]) >= 11


@pytest.mark.usefixtures("own_tools")
def test_a_user_is_acted_for_and_text_cannot_steer_the_terminal(shell: Shell) -> None:
    done = shell("call", "who-calls", "--user", "u1")
    assert (done.code, done.out) == (0, "u1�[31m\n")


def test_a_rule_of_the_tool_is_one_line(shell: Shell) -> None:
    done = shell("call", "convert-units", "value=3", "unit=mi", "to=kg", "--demo")
    assert (done.code, done.out) == (1, "")
    assert matches("cli", "a rule of the tool is one line", done.err)


def test_a_wrong_argument_is_named_by_its_path(shell: Shell) -> None:
    done = shell("call", "roll-dice", "count=many", "--demo")
    assert done.code == 1
    assert done.err.startswith("toolcrib: INVALID_ARGUMENTS:")
    assert "(at arguments.count)" in done.err


def test_unknown_tool_suggests_a_name(shell: Shell) -> None:
    done = shell("call", "get-datetim", "x=1")
    assert (done.code, done.out) == (1, "")
    assert matches("cli", "unknown tool suggests a name", done.err)
    assert shell("call", "nope", "--json").json["error"]["code"] == "TOOL_NOT_FOUND"


def test_an_unknown_context(shell: Shell) -> None:
    done = shell("call", "get-datetime", "timezone=UTC", "--context", "nowhere")
    assert (done.code, done.err) == (
        1,
        "toolcrib: NOT_FOUND: there is no context named nowhere (at context)\n",
    )


@pytest.mark.usefixtures("own_tools")
def test_traceback_is_hidden_by_default(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    done = shell("call", "explode", "text=xyzzy")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("toolcrib: HANDLER_ERROR:")
    assert matches("cli", "traceback is hidden by default", done.err)
    assert "xyzzy" not in done.err
    monkeypatch.setenv("TOOLCRIB_DEBUG", "1")
    assert "the word is xyzzy" in shell("call", "explode", "text=xyzzy").err


def test_the_time_limit_is_kept(shell: Shell) -> None:
    done = shell("call", "slow-countdown", "seconds=20", "--timeout", "0.05", "--demo", "--json")
    assert done.code == 1
    assert done.json["error"]["code"] == "OUTCOME_UNKNOWN"


@pytest.mark.parametrize(
    "arguments,said",
    [
        ([], "NAME"),
        (["get-datetime", "{"], "not JSON"),
        (["get-datetime", "word"], "'word' is not an argument"),
        (["get-datetime", "--timeout", "0"], "--timeout"),
    ],
)
def test_wrong_use(shell: Shell, arguments: list[str], said: str) -> None:
    done = shell("call", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.requirement("E12")
@pytest.mark.usefixtures("own_tools")
def test_a_key_lasts_from_one_command_to_the_next(shell: Shell, tmp_path: Path) -> None:
    words = ("call", "add-line", "text=x", "--idempotency-key")
    assert [shell(*words, key).out.split()[-1] for key in ("a", "a", "b")] == ["1", "1", "2"]
    assert (tmp_path / "lines.txt").read_text() == "x\nx\n"
    wrong = shell(*words, "no key")
    assert (wrong.code, "INVALID_REQUEST" in wrong.err) == (1, True)
