"""Evidence whose answer is known, made of laws instead of networks."""

import dataclasses

import numpy as np

from ensize.curves import Curve
from ensize.evidence import Evidence
from ensize.laws import fit_many
from ensize.planes import Plane
from ensize.predictions import Pool, Predictions
from ensize.profiles import TEMPERATURES, Profile, spaced

SIZES = tuple(25_000 * 2**i for i in range(6))
NETWORKS = 16


def pools_of(sizes, networks=NETWORKS, recipe=None):
    """Pools that say nothing, for what only asks who they are."""
    rows = (np.zeros((4, 2), np.float32),) * networks
    labels = tuple(f"network {i}" for i in range(networks))
    return tuple(
        Predictions(
            rows,
            np.array([0, 1, 0, 1]),
            labels,
            pool=Pool(f"s{size}", family="mlp", size=size, recipe=recipe),
        )
        for size in sizes
    )


def curve_of(points, networks, noise, accuracy, rng):
    """A curve through these points; leaving out a network moves all of it alike."""
    n = np.array([k for k in spaced(networks) if k < networks] + [networks])
    value = np.asarray(points(n.astype(float)))
    value = value + noise * (rng.standard_normal() + 0.3 * rng.standard_normal(len(n)))
    moved = rng.standard_normal((networks, 1))
    moved -= moved.mean()
    # A standard error of `noise`, and a little that is not alike along n.
    moved *= noise / np.sqrt((networks - 1) * moved.var())
    moved = moved * (1 + 0.3 * rng.standard_normal((networks, len(n))))
    unknown = np.full(len(n), np.nan)
    right = unknown if accuracy is None else np.asarray(accuracy(n.astype(float)))
    ensembles = np.where(n == networks, 1, networks)
    return Curve(
        n=n,
        ensembles=ensembles,
        nll=value,
        cnll=value,
        cnll_se=np.full(len(n), noise),
        cnll_whole=value,
        le_nll=value,
        accuracy=right,
        brier=unknown,
        jensen_gap=unknown,
        temperature=np.ones(len(n)),
        temperature_sd=np.zeros(len(n)),
        networks=networks,
        objects=4,
        classes=2,
        odd=(),
        warnings=(),
        options={"seed": 0},
        cnll_without=value + moved,
        accuracy_without=right + moved,
    )


def evidence_of_plane(
    cnll,
    *,
    sizes=SIZES,
    networks=NETWORKS,
    noise=1e-6,
    accuracy=None,
    recipe=None,
    seconds=None,
    name="laws",
):
    """Evidence in which n networks of size s have CNLL `cnll(n, s)`."""
    rng = np.random.default_rng(0)
    pools = pools_of(sizes, networks, recipe)
    curves = [
        curve_of(
            lambda n, s=s: cnll(n, s),
            networks,
            noise,
            accuracy and (lambda n, s=s: accuracy(n, s)),
            rng,
        )
        for s in sizes
    ]
    unknown = np.full(len(sizes), np.nan)
    plane = None
    if len(sizes) > 1:
        plane = Plane(pools, tuple(curves), unknown, "", (), curves[0].options)
    took = unknown if seconds is None else np.array([float(seconds(s)) for s in sizes])
    found = Evidence(name, pools, plane, "there is one size", {}, took, took)
    for k, curve in enumerate(curves):
        found.remember(("curve", k), lambda curve=curve: curve)
    return found


def evidence_of_temperatures(nll, *, sizes=SIZES, networks=NETWORKS, noise=1e-6):
    """Evidence in which n networks of size s have NLL `nll(temperature, n, s)`."""
    rng = np.random.default_rng(1)
    found = evidence_of_plane(
        lambda n, _: 0.3 + 0.2 / n, sizes=sizes, networks=networks
    )
    n = np.array(spaced(networks))
    ensembles = np.where(n == networks, 1, networks)
    some = ensembles >= 3
    for k, pool in enumerate(found.pools):
        table = np.asarray(nll(TEMPERATURES[:, None], n.astype(float), sizes[k]))
        scale = noise * np.sqrt(networks) / (networks - 1)
        moved = scale * rng.standard_normal((len(TEMPERATURES), networks, len(n)))
        made = Profile(
            n=n,
            ensembles=ensembles,
            temperature=TEMPERATURES,
            nll=table,
            laws=fit_many(n[some], table[:, some]),
            best=TEMPERATURES[table.argmin(axis=0)],
            le_nll=table.min(axis=0),
            pool=pool.pool,
            networks=networks,
            objects=4,
            apply="before",
            nll_without=table[:, None] + moved,
        )
        found.remember(("profile", k, "before"), lambda made=made: made)
    return found


def remembering(found, **known):
    """The same evidence that knows something already, by the key of its memory."""
    memory = {**found._memory, **known.pop("memory", {})}
    return dataclasses.replace(found, _memory=memory, **known)
