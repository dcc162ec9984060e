"""`toolcrib check`: checks the config, and tools against the checklist."""

from typing import TYPE_CHECKING

import click

from toolcrib.cli.backend import Target, json_option, with_target

if TYPE_CHECKING:
    from toolcrib.testing.module_check import ModuleReport


@click.command("check")
@click.argument("module", required=False)
@with_target
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show every item of the checklist for every tool, also those that pass.",
)
@click.option("--run-mutations", is_flag=True, help="Also run the examples of tools with side effects.")
@click.option(
    "--user",
    metavar="ID",
    help="Run the examples for this user; with --url, also check the tools of the user's apps.",
)
@click.option(
    "--publish", is_flag=True, help="Store the definitions of MODULE; later checks fail on breaking changes."
)
@click.option(
    "--format", metavar="NAME", help="Only check how the schemas convert for a provider, such as gemini."
)
@json_option
def command(
    target: Target,
    *,
    module: str | None,
    everything: bool,
    run_mutations: bool,
    user: str | None,
    publish: bool,
    format: str | None,
    as_json: bool,
) -> int:
    """Check the config and its tools, and the tools of MODULE if given.

    MODULE is a dotted name or a file. Exits with status 1 and a list of findings if a check fails. With
    --url, a running gateway and its tools are checked. With --format, only the schemas are checked, as
    converted for that provider: which constraints are lost, and which schemas are equivalent.
    """
    if format is not None:
        return _report(target, module, format, publish=publish or run_mutations, as_json=as_json)
    if publish and module is None:
        raise click.UsageError("--publish stores the definitions of a module: give MODULE")
    from toolcrib.cli.check_run import CheckRun, show

    checks = CheckRun(run_mutations=run_mutations, user=user)
    if target.url is not None:
        checks.check_running(target)
    else:
        checks.check_config(target)
    report = None if module is None else checks.check_module(module)
    if publish and report is not None:
        _publish(report)
    return show(checks.found, checks.tools, everything=everything, as_json=as_json)


def _report(target: Target, module: str | None, format: str, *, publish: bool, as_json: bool) -> int:
    if publish:
        raise click.UsageError("--format only checks schemas: omit --publish and --run-mutations")
    from toolcrib.cli.check_run import show_format_report

    return show_format_report(target, module, format, as_json=as_json)


def _publish(report: "ModuleReport") -> None:
    from toolcrib.cli.output import print_note
    from toolcrib.testing.module_check import publish_module

    path = publish_module(report)
    print_note(
        f"published in {path}" if path is not None else "nothing is published: fix the listed problems first"
    )
