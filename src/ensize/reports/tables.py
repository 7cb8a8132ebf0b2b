"""Tables: the numbers behind the page, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.reports.libraries import libraries
from ensize.reports.markup import Markup, element, joined
from ensize.reports.planner import named
from ensize.reports.sections import section, table
from ensize.reports.words import between, short, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.reports.studies import Study

_DASH = "–"


def numbers(
    studies: Sequence[Study], planners: Sequence[Sequence[dict[str, Any]]]
) -> Markup:
    """Write the tables of all studies."""
    parts: list[Markup] = []
    for study, found in zip(studies, planners, strict=True):
        parts += [element("h3", study.name)] if len(studies) > 1 else []
        parts.append(_pools(study, found))
        if study.whole:
            parts += [
                _budgets(found[0]["units"]["parameters"], score)
                for score in found[0]["units"]["parameters"]["scores"]
            ]
    return section("tables", "Tables", *parts)


def _pools(study: Study, planners: Sequence[dict[str, Any]]) -> Markup:
    """Write what each pool scores, alone, together and without end."""
    found = [each for planner in planners for each in planner["pools"]]
    pairs = [(plane, k) for plane in study.planes for k in range(len(plane))]
    rows = []
    for (plane, k), pool in zip(pairs, found, strict=True):
        curve, cnll = plane.curves[k], pool["curves"]["cnll"]
        here = cnll["n"].index(pool["networks"])
        limit = pool["limit"]
        accuracy = curve.accuracy[[0, -1]]
        rows.append(
            [
                pool["name"],
                _DASH if pool["size"] is None else f"{pool['size']:,}",
                pool["networks"],
                shown(cnll["value"][0]),
                shown(cnll["value"][here]),
                _DASH if limit is None else shown(limit[0]),
                _DASH if limit is None else between(*limit[1:]),
                *(shown(each, "accuracy") for each in accuracy.tolist()),
                f"{curve.temperature[-1]:.3g}",
            ]
        )
    return table(
        "Pools: CNLL in nats of one network, of all together, and without end with its"
        " 90 % interval; accuracy; the best temperature of all together.",
        [
            ("pool", "words"),
            "parameters",
            "networks",
            "CNLL of 1",
            "of all",
            "without end",
            "90 % interval",
            "accuracy of 1",
            "of all",
            "temperature",
        ],
        rows,
    )


def _budgets(unit: dict[str, Any], score: str) -> Markup:
    """Write the best split of what one network of each pool takes."""
    own = {float(each) for each in unit["costs"]}
    rows = []
    for budget, plan in zip(unit["budgets"], unit["scores"][score], strict=True):
        if budget not in own or "splits" not in plan:
            continue
        best = plan["splits"][plan["best"]]
        alone = None if plan["single"] is None else plan["splits"][plan["single"]]
        gain, low, high = plan["advantage"]
        rows.append(
            [
                short(budget),
                named(best),
                shown(best["value"], score),
                between(best["low"], best["high"], score),
                _DASH if alone is None else shown(alone["value"], score),
                _DASH if np.isnan(gain) else shown(gain, score),
                _DASH if np.isnan(gain) else between(low, high, score),
                plan["verdict"]["code"],
            ]
        )
    name, unit_of = ("CNLL", " (nats)") if score == "cnll" else ("accuracy", "")
    return table(
        f"Budgets of one network of each pool, by {name}{unit_of}: the best split; one"
        " network of this size; by how much the best of several networks is better.",
        [
            "parameters",
            ("best split", "words"),
            name,
            "90 % interval",
            "one network",
            "better by",
            "90 % interval",
            ("verdict", "words"),
        ],
        rows,
    )


def origins(studies: Sequence[Study], version: str, shaping: str) -> Markup:
    """Write the recipe and where everything comes from."""
    parts: list[Markup | None] = []
    for study in studies:
        parts += [element("h3", study.name)] if len(studies) > 1 else []
        parts.append(_made(study))
        parts.append(_recipe(study))
    parts.append(
        element(
            "p",
            f"Worked out by ensize {version}; {shaping}. CNLL is the calibrated"
            " negative log-likelihood in nats, by test-time cross-validation: the"
            " temperature is chosen on one half of the test objects and scored on the"
            " other. Values are those expected of ensembles of other networks of the"
            " same recipe; intervals are of 90 % and cover the luck of the networks,"
            " not that of the test set.",
            class_="note",
        )
    )
    return section("recipe", "Recipe and provenance", *parts)


def _made(study: Study) -> Markup:
    """Tell who the networks are, and how they came to be."""
    said = list(dict.fromkeys(key for made in study.made for key in made.said))
    # What all pools have in common is said once.
    common = {
        key: joined_values(study.made[0].said.get(key, ()))
        for key in said
        if len({made.said.get(key) for made in study.made}) == 1
    }
    rest = [key for key in said if key not in common]
    rows = [
        [
            made.pool,
            made.networks,
            made.seeds,
            made.first if made.first == made.last else f"{made.first} to {made.last}",
            *(joined_values(made.said.get(key, ())) for key in rest),
        ]
        for made in study.made
    ]
    found = study.evidence
    facts = {
        "store": study.folder,
        "test objects": f"{found.objects:,}",
        "classes": f"{found.pools[0].classes:,}",
        "true classes": f"fingerprint {study.targets}",
        **common,
    }
    pairs = (
        joined(element("dt", key), element("dd", value)) for key, value in facts.items()
    )
    return joined(
        element("dl", *pairs),
        table(
            "The networks: how many, their seeds, and when they were written.",
            [
                ("pool", "words"),
                "networks",
                ("seeds", "long"),
                ("written", "words"),
                *((key, "long") for key in rest),
            ],
            rows,
        ),
    )


def joined_values(values: Sequence[str]) -> str:
    """List what networks say of themselves; a dash where they say nothing."""
    return ", ".join(values) or _DASH


def _recipe(study: Study) -> Markup | None:
    if not study.recipe.strip():
        return None
    return element(
        "details",
        element("summary", "The study file"),
        element("pre", element("code", study.recipe), tabindex="0"),
    )


def footer(version: str) -> Markup:
    """Name what the page carries, with its licenses."""
    carried = libraries()
    names = " and ".join(f"{each.name} {each.version}" for each in carried)
    return element(
        "footer",
        element(
            "div",
            element(
                "p",
                f"Made by ensize {version}. This page stands alone: it asks nothing of"
                f" any network. Charts by {names}, embedded.",
            ),
            element(
                "details",
                element("summary", "Licenses"),
                *(element("pre", each.license_text) for each in carried),
            ),
            class_="inner",
        ),
    )
