"""The verbs `status` and `verify`: what a store holds, and whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ensize.cli.options import Json
from ensize.cli.printing import print_json, print_table, say, shown_progress, warn

StoreFolder = Annotated[Path, typer.Argument(metavar="STORE", help="A store.")]


def status(store: StoreFolder, as_json: Json = False) -> None:
    """List what a store holds, by its names alone; `verify` reads the files."""
    from ensize.stores import Store

    _print_status(Store.open(store), None, {}, as_json=as_json)


def verify(
    store: StoreFolder,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Move damaged files into damaged/ in the store; nothing is deleted.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Read every byte of a store and say whether each file is as it was written."""
    from ensize.stores import Store

    opened = Store.open(store)
    with shown_progress() as progress:
        damaged = opened.verify(repair=repair, progress=progress)
    found = [
        {"path": each.path, "reason": each.reason, "moved": each.moved}
        for each in damaged
    ]
    _print_status(opened, found, {"repair": repair}, as_json=as_json)
    if any(each.moved is None for each in damaged):
        raise typer.Exit(1)


def _print_status(
    store: Any, damaged: Any, options: dict[str, bool], *, as_json: bool
) -> None:
    pools = store.pools()
    partial = len(store.partials())
    warnings = []
    if partial:
        warnings.append(
            f"{partial} files are unfinished: of writers that are still at work, or"
            " that were killed; no reader takes them"
        )
    if any(each["moved"] for each in damaged or []):
        warnings.append(
            "what was damaged is now in damaged/, with the reasons; record what is"
            " missing again, or give the same study"
        )
    warn(warnings)
    columns = ["name", "width", "size", "networks", "form", "objects", "classes"]
    rows = [[getattr(pool, column) for column in columns] for pool in pools]
    if as_json:
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json(
            {
                "pools": listed,
                "damaged": damaged,
                "warnings": warnings,
                "options": options,
            }
        )
        return
    total = sum(pool.networks for pool in pools)
    title = f"{store.path}: {len(pools)} pools, {total:,} networks"
    for row in rows:  # widths are whole, but for those that somebody gives otherwise
        row[1] = None if row[1] is None else f"{row[1]:g}"
    print_table(title, columns, rows)
    if damaged is not None and not damaged:
        say("Every file is as it was written.")
    for each in damaged or []:
        say(f"damaged: {each['path']}: {each['reason']}")
        if each["moved"]:
            say(f"moved to {each['moved']}")
