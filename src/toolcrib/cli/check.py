"""`toolcrib check`: the config, the tools it gives, and the checklist of a good tool."""

from typing import TYPE_CHECKING

import click

from toolcrib.cli.backend import Target, json_option, with_target

if TYPE_CHECKING:
    from toolcrib.testing.module_check import ModuleReport


@click.command("check")
@click.argument("module", required=False)
@with_target
@click.option("--all", "everything", is_flag=True, help="Show every item of the checklist for every tool.")
@click.option(
    "--run-mutations", is_flag=True, help="Run the examples of tools that may change something too."
)
@click.option(
    "--user",
    metavar="ID",
    help="Run the examples for this user; with --url, check what they may use, their apps too.",
)
@click.option("--publish", is_flag=True, help="Keep the definitions of MODULE, to hold later ones against.")
@click.option(
    "--format", metavar="NAME", help="Say what a provider is not told of the tools, such as gemini."
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
    """Check the config and its tools, and the tools of MODULE if one is named.

    MODULE is a dotted name or a file. Leaves with 1 and a list where something falls short. With --url a
    running gateway says how it does. With --format only the schemas are looked at, as a provider is told of
    them: what is lost, and whether they still accept exactly what the tools accept.
    """
    if format is not None:
        return _report(target, module, format, publish=publish or run_mutations, as_json=as_json)
    if publish and module is None:
        raise click.UsageError("--publish keeps the definitions of a module: name it")
    from toolcrib.cli.check_run import CheckRun, show

    look = CheckRun(run_mutations=run_mutations, user=user)
    if target.url is not None:
        look.at_running(target)
    else:
        look.at_config(target)
    report = None if module is None else look.at_module(module)
    if publish and report is not None:
        _publish(report)
    return show(look.found, look.tools, everything=everything, as_json=as_json)


def _report(target: Target, module: str | None, format: str, *, publish: bool, as_json: bool) -> int:
    if publish:
        raise click.UsageError("--format only looks at schemas: leave out --publish and --run-mutations")
    from toolcrib.cli.check_run import show_format_report

    return show_format_report(target, module, format, as_json=as_json)


def _publish(report: "ModuleReport") -> None:
    from toolcrib.cli.output import print_note
    from toolcrib.testing.module_check import publish_module

    path = publish_module(report)
    print_note(
        f"published in {path}" if path is not None else "nothing is published: mend what is listed first"
    )
