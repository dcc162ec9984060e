"""`toolcrib check`: the config, the tools it gives, and the checklist of a good tool."""

import click

from toolcrib.cli.desk import Desk, at_desk
from toolcrib.cli.place import Place, at_place, json_option
from toolcrib.model import JsonObject


@click.command("check")
@click.argument("module", required=False)
@at_place
@json_option
def command(place: Place, *, module: str | None, as_json: bool) -> int:
    """Check the config and its tools, and the tools of MODULE if one is named.

    MODULE is a dotted name or a file. Leaves with 1 and a list where something falls short. With --url a
    running gateway says how it does.
    """
    from toolcrib.cli.findings import Found, of_config, of_gateway, of_module, of_status, show

    found: list[Found] = []
    if place.url is not None:

        async def ask(desk: Desk) -> JsonObject:
            return await desk.status()

        found += of_status(at_desk(place, ask))
    else:
        document, found = of_config(place.config)
        if document is not None:
            found += of_gateway(document, demo=place.demo)
    if module is not None:
        found += of_module(module)
    return show(found, as_json=as_json)
