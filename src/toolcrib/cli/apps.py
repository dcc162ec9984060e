"""`toolcrib apps`: which apps there are, and the tools of one sent in by its developer."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolcrib.cli.backend import Backend, Target, json_option, with_backend, with_target
from toolcrib.cli.output import print_error, print_line, print_note, show_json, show_table
from toolcrib.errors import Refused, problem_json
from toolcrib.model import JsonObject, Problem

if TYPE_CHECKING:
    from toolcrib.sdk import AppServer


@click.group("apps")
def command() -> None:
    """List apps, and publish the tools of one.

    An app is added with PUT /api/apps/{package}, which gives its API key. Its developer then publishes its
    tools: those the AppServer of a module has registered.
    """


@command.command("list")
@with_target
@json_option
def list_(target: Target, *, as_json: bool) -> int:
    """List the apps."""

    async def work(backend: Backend) -> Sequence[JsonObject]:
        return await backend.apps()

    apps = with_backend(target, work)
    if as_json:
        show_json({"apps": apps})
        return 0
    show_table(("Package", "Name", "Type", "Needs", "Version", "Tools"), [_row(app) for app in apps])
    if not apps:
        print_note("there are no apps yet; PUT /api/apps/{package} adds one")
    return 0


@command.command("publish")
@click.argument("module", metavar="MODULE[:NAME]")
@with_target
@json_option
def publish(target: Target, *, module: str, as_json: bool) -> int:
    """Send in the tools of the AppServer in MODULE, called NAME where there are several.

    They take the place of the app's tools whole. Where one has a fault, every fault is named by its path and
    nothing is changed.
    """
    app = _find_app_server(module)

    async def work(backend: Backend) -> JsonObject:
        return await backend.define_tools(app.package, app.get_tool_definitions())

    try:
        published = with_backend(target, work, lasting=True)
    except Refused as refused:
        if not refused.problem.details.get("faults"):
            raise
        _show_faults(refused.problem, as_json=as_json)
        return 1
    if as_json:
        show_json(published)
        return 0
    names = ", ".join(published["tools"]) or "none"
    print_line(f"{published['packageName']} has these tools now (version {published['version']}): {names}")
    for warning in published["warnings"]:
        print_note(f"Warning: {warning}")
    return 0


def _find_app_server(target: str) -> "AppServer":
    from toolcrib.sdk import AppServer
    from toolcrib.sources.functions import ModuleProblem, imported

    path, _, name = target.partition(":")
    try:
        module = imported(path, folder=Path.cwd())
    except ModuleProblem as problem:
        raise click.UsageError(str(problem)) from problem
    apps = {key: each for key, each in vars(module).items() if isinstance(each, AppServer)}
    if name:
        if name not in apps:
            known = f"; it has {', '.join(apps)}" if apps else ""
            raise click.UsageError(f"{path} has no AppServer called {name}{known}")
        return apps[name]
    if len(set(map(id, apps.values()))) == 1:
        return next(iter(apps.values()))
    if not apps:
        raise click.UsageError(f"the module {path} has no AppServer: app = AppServer(package=…, api_key=…)")
    raise click.UsageError(f"{path} has several apps: say which, such as {path}:{next(iter(apps))}")


def _show_faults(problem: Problem, *, as_json: bool) -> None:
    if as_json:
        show_json({"success": False, "status": "error", "error": problem_json(problem)})
        return
    for fault in problem.details["faults"]:
        print_error(f"{fault['path']}: {fault['message']}")


def _row(app: JsonObject) -> tuple[str, ...]:
    needs = [each["type"] for each in app["hardwareRequirements"] if each["level"] == "REQUIRED"]
    return (
        str(app["packageName"]),
        str(app["name"]),
        str(app["appType"]),
        " ".join(needs) or "none",
        str(app["version"]),
        " ".join(app["tools"]) or "none",
    )
