"""`toolcrib apps`: lists the apps, and uploads the tools of one."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolcrib.cli.backend import Target, json_option, with_backend, with_target
from toolcrib.cli.output import print_error, print_line, print_note, show_json, show_table
from toolcrib.errors import Refused, problem_json
from toolcrib.model import JsonObject, Problem

if TYPE_CHECKING:
    from toolcrib.sdk import AppServer


@click.group("apps")
def command() -> None:
    """List apps, and publish the tools of one.

    PUT /api/apps/{package} registers an app and returns its API key. Its developer then publishes the tools
    that are registered with the AppServer of a module.
    """


@command.command("list")
@with_target
@json_option
def list_(target: Target, *, as_json: bool) -> int:
    """List the apps."""
    apps = with_backend(target, lambda backend: backend.apps())
    if as_json:
        show_json({"apps": apps})
        return 0
    show_table(("Package", "Name", "Type", "Needs", "Version", "Tools"), [_row(app) for app in apps])
    if not apps:
        print_note("No apps are registered. PUT /api/apps/{package} registers one.")
    return 0


@command.command("publish")
@click.argument("module", metavar="MODULE[:NAME]")
@with_target
@json_option
def publish(target: Target, *, module: str, as_json: bool) -> int:
    """Upload the tools of the AppServer in MODULE; NAME selects one of several.

    They replace all tools of the app. If a definition is invalid, nothing is changed, every error is printed
    with its path, and the exit status is 1.
    """
    app = _find_app_server(module)
    try:
        published = with_backend(
            target,
            lambda backend: backend.define_tools(app.package, app.get_tool_definitions()),
            lasting=True,
        )
    except Refused as refused:
        if not refused.problem.details.get("faults"):
            raise
        _show_faults(refused.problem, as_json=as_json)
        return 1
    if as_json:
        show_json(published)
        return 0
    names = ", ".join(published["tools"]) or "none"
    print_line(f"{published['packageName']}: published version {published['version']} with the tools {names}")
    for warning in published["warnings"]:
        print_note(f"Warning: {warning}")
    return 0


def _find_app_server(named: str) -> "AppServer":
    from toolcrib.sdk import AppServer
    from toolcrib.sources.functions import ModuleProblem, imported

    path, _, name = named.partition(":")
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
        raise click.UsageError(f"{path} has no AppServer; create one: app = AppServer(package=…, api_key=…)")
    raise click.UsageError(f"{path} has several apps; name one, such as {path}:{next(iter(apps))}")


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
