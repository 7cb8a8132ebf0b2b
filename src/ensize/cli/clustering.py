"""Options of verbs that train on a Ray cluster."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensize.checks import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

Executor = Annotated[
    str,
    typer.Option(metavar="here|processes|ray", help="Where networks are trained."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="auto|HOST:PORT|ray://HOST:PORT|local",
        help="Which cluster; RAY_ADDRESS, or one on this machine, if not given.",
    ),
]
Gpus = Annotated[
    float | None,
    typer.Option(
        "--gpus-per-committee",
        metavar="GPUS",
        help="On Ray: 0.5 lets two committees share a GPU.",
    ),
]
Cpus = Annotated[
    float | None,
    typer.Option(
        "--cpus-per-committee", metavar="CPUS", help="On Ray: 1 if not given."
    ),
]
Committees = Annotated[
    int | None,
    typer.Option(
        "--committees", help="On Ray: how many at once; what fits, if not given."
    ),
]
Retries = Annotated[
    int | None,
    typer.Option(
        "--retries",
        help="On Ray: how often a committee is tried again whose node was lost; 3.",
    ),
]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream", help="On Ray: do not look for the store's folder on the nodes."
    ),
]


def ray_options(*given: Any) -> dict[str, Any]:
    """Name what was given by the options above, in their order."""
    return dict(zip(_OPTIONS, given, strict=True))


@contextlib.contextmanager
def executing(name: str, device: str | None, **ray: Any) -> Iterator[Any]:
    """Have an executor; `ray` are options that only Ray has."""
    given = {key: value for key, value in ray.items() if value}
    if name != "ray":
        if given:
            raise InputError(
                f"--{_OPTIONS[next(iter(given))]} is for a Ray cluster; give --executor"
                " ray as well, or leave it out"
            )
        yield name
        return
    from ensize.train.clusters import Cluster

    given = {key: value for key, value in ray.items() if value is not None}
    # What Ray has to say, it prints; stdout is for results.
    with contextlib.redirect_stdout(sys.stderr):
        cluster = Cluster(device, **given)
        with contextlib.closing(cluster):
            yield cluster


_OPTIONS = {
    "address": "ray-address",
    "gpus": "gpus-per-committee",
    "cpus": "cpus-per-committee",
    "committees": "committees",
    "retries": "retries",
    "stream": "stream",
}
