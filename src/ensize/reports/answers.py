"""Answers: what a study says about how many networks and how large, in words.

Every number is one of the planner's, so that the words and the planner agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensize.reports.planner import named
from ensize.reports.words import (
    between,
    changes,
    listed,
    networks,
    ordinal,
    sentence,
    short,
    shown,
)

if TYPE_CHECKING:
    from ensize.reports.studies import Study

# The score of endless networks is as good as reached when it is this near.
_NEAR = 0.01


@dataclass(frozen=True)
class Answer:
    """What is to be done, why, what else there is to know, and what to be wary of."""

    headline: str
    because: str
    facts: tuple[str, ...]
    warnings: tuple[str, ...]


def answer_of(study: Study, planners: list[dict[str, Any]]) -> Answer:
    """Answer for one family of a store."""
    if study.whole:
        return _how_large(study, planners[0])
    return _how_many(study, planners)


def _how_large(study: Study, planner: dict[str, Any]) -> Answer:
    """Answer by the split of the budget that the planner starts with."""
    unit = planner["units"]["parameters"]
    plans = unit["scores"]["cnll"]
    plan = plans[unit["start"]]
    if "reason" in plan:
        return Answer(
            f"{short(unit['budgets'][unit['start']])} parameters cannot be planned.",
            sentence(plan["reason"]),
            (),
            study.planes[0].warnings,
        )
    best = plan["splits"][plan["best"]]
    at_hand = best if best["pool"] else _at_hand(plan)
    facts = [_not_trained(plan), _as_good(plan), _by_accuracy(unit, plan)]
    if at_hand is not None:
        pool = next(p for p in planner["pools"] if p["name"] == at_hand["pool"])
        facts += [_next(pool, at_hand["n"]), _endless(pool)]
    facts.append(_where_it_pays(plans, unit["budgets"]))
    return Answer(
        _advice(plan),
        sentence(plan["verdict"]["sentence"]),
        tuple(each for each in facts if each),
        tuple(dict.fromkeys([*study.planes[0].warnings, *plan["notes"]])),
    )


def _advice(plan: dict[str, Any]) -> str:
    budget, code = plan["budget"], plan["verdict"]["code"]
    best = plan["splits"][plan["best"]]
    single = None if plan["single"] is None else plan["splits"][plan["single"]]
    one = f"one network of {short(budget)} parameters"
    if single is not None:
        one = named(single)
    if code == "split":
        return f"Train {named(best)} rather than {one}."
    if code == "no split":
        return f"Train {one}: a split of its budget is not worth it."
    verb = "is" if best["n"] == 1 else "are"
    return f"Open: so far {named(best)} {verb} best for {short(budget)} parameters."


def _at_hand(plan: dict[str, Any]) -> dict[str, Any] | None:
    """Find the best split among those of networks that were trained."""
    trained = [each for each in plan["splits"] if each["pool"]]
    return min(trained, key=lambda each: float(each["value"]), default=None)


def _not_trained(plan: dict[str, Any]) -> str | None:
    """Say what else is best where the best split is between two sizes."""
    best, other = plan["splits"][plan["best"]], _at_hand(plan)
    if best["pool"] or other is None:
        return None
    verb = "is" if other["n"] == 1 else "are"
    return (
        f"No network of {short(best['size'])} parameters was trained. Of the sizes at"
        f" hand {named(other)} {verb} best: CNLL {shown(other['value'])} against"
        f" {shown(best['value'])}."
    )


def _as_good(plan: dict[str, Any]) -> str | None:
    others = [named(plan["splits"][k]) for k in plan["as_good"] if k != plan["best"]]
    if not others:
        return None
    return f"As good, within the tolerance: {listed(others)}."


def _by_accuracy(unit: dict[str, Any], plan: dict[str, Any]) -> str | None:
    plans = unit["scores"].get("accuracy")
    found = None if plans is None else plans[unit["start"]]
    if not found or "splits" not in found:
        return None
    best = found["splits"][found["best"]]
    text = f"By accuracy the best split is {named(best)}, with"
    text += f" {shown(best['value'], 'accuracy')}"
    if found["single"] is not None and found["single"] != found["best"]:
        alone = found["splits"][found["single"]]["value"]
        text += f" against {shown(alone, 'accuracy')} of a single network"
    same = best["n"] == plan["splits"][plan["best"]]["n"]
    return f"{text}{': the same n' if same else ''}."


def _next(pool: dict[str, Any], n: int) -> str | None:
    """Say what one network more gains."""
    curve = pool["curves"]["cnll"]
    if n not in curve["n"]:
        return None
    found = curve["gain"][curve["n"].index(n)]
    if math.isnan(found[0]):
        return None
    gain, low, high = changes(*found)
    return (
        f"The {ordinal(n + 1)} network of {pool['name']} would lower CNLL by {gain}"
        f" nats ({low} to {high})."
    )


def _endless(pool: dict[str, Any]) -> str | None:
    """Say where a pool's scores end, and when they are nearly there."""
    if pool["limit"] is None:
        return None
    value, low, high = pool["limit"]
    text = (
        f"Endlessly many networks of {pool['name']} would have CNLL {shown(value)}"
        f" ({between(low, high)})"
    )
    curve = pool["curves"]["cnll"]
    near = [
        n
        for n, cnll in zip(curve["n"], curve["value"], strict=True)
        if cnll <= (1 + _NEAR) * value
    ]
    if not near:
        return f"{text}."
    return f"{text}; {networks(near[0])} come within {_NEAR:.0%} of it."


def _where_it_pays(plans: list[dict[str, Any]], budgets: list[float]) -> str | None:
    """Say at which budgets a split is worth it."""
    known = [
        (budget, plan["verdict"]["code"])
        for budget, plan in zip(budgets, plans, strict=True)
        if "verdict" in plan
    ]
    paying = [budget for budget, code in known if code == "split"]
    if len(known) < 2:
        return None
    among = f"the {len(known)} budgets from {short(known[0][0])} to"
    among += f" {short(known[-1][0])} parameters"
    if not paying:
        return f"At none of {among} is a split known to be worth it."
    return (
        f"A split is worth it at {len(paying)} of {among}; the smallest of them is"
        f" {short(paying[0])}."
    )


def _how_many(study: Study, planners: list[dict[str, Any]]) -> Answer:
    """Answer by the forecast of the first pool, where sizes cannot be compared."""
    pool = planners[0]["pools"][0]
    curve, count = pool["curves"]["cnll"], pool["networks"]
    here = shown(curve["value"][curve["n"].index(count)])
    headline = f"{networks(count)} of {pool['name']} have CNLL {here}"
    if pool["limit"] is not None:
        headline += f"; ever more would bring {shown(pool['limit'][0])}"
    facts = [_next(pool, count), _endless(pool)]
    lacking = study.evidence.lacking.replace("what was handed in", study.name)
    return Answer(
        f"{headline}.",
        f"How large the networks should be cannot be said: {lacking.rstrip('.')}.",
        tuple(each for each in facts if each),
        tuple(
            f"pool {plane.names[0]!r}: {each}"
            for plane in study.planes
            for each in plane.warnings
        ),
    )
