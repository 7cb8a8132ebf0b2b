"""Along n: whether scores follow a law, and whether a law describes them best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.claims.estimates import Estimate, jackknife
from ensize.claims.points import Floats, along_n, along_temperature, falling, sized
from ensize.claims.rivals import FORMS, fit_form
from ensize.claims.verdicts import Bounds, claim, counted
from ensize.evidence import PAPER_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ensize.evidence import Evidence

SECTION = "NLL as a function of ensemble size"
# A law is close where its residuals (RMSE) are below this part of the fall along n. The
# paper's are: below 6·10⁻⁴ nats for CNLL on CIFAR-10, which falls by about a tenth.
_CLOSE = 0.01


@claim(
    "cnll-n-law",
    "CNLL_n is closely approximated by a power law from n = 1 on",
    section=f"{SECTION}; appendix Power law approximation of CNLL as a function of"
    " ensemble size",
    bounds=Bounds(most=_CLOSE),
)
def cnll_law(evidence: Evidence) -> tuple[Estimate, str]:
    """Find how far CNLL_n is from its law.

    Section *NLL as a function of ensemble size* and the appendix *Power law
    approximation of CNLL as a function of ensemble size*: RMSE below 5.9·10⁻⁴ nats for
    every VGG and 4.7·10⁻⁴ for every WideResNet on CIFAR-10. The number is the RMSE as a
    part of the fall along n, a quadratic mean over pools; jackknife over networks.
    """
    found = along_n(evidence)
    shares = [each.shares for each in found]
    worst = found[int(np.argmax([each[0] for each in shares]))]
    value = jackknife(quadratic_mean, shares).at_least_0
    return value, (
        f"the laws of {counted(len(found), 'pool')} leave residuals of"
        f" {value.value:.2%} of the fall along n, at most {worst.shares[0]:.2%}"
        f" ({worst.pool!r}: RMSE {worst.laws.rmse[0]:.2g} nats)"
    )


@claim(
    "cnll-n-exponent",
    "the exponent of CNLL_n is slightly larger than the -1 of the theory",
    section=f"{SECTION}; Conclusion",
    bounds=Bounds(-1.0, -0.5),
)
def cnll_exponent(evidence: Evidence) -> tuple[Estimate, str]:
    """Find the exponent of CNLL_n.

    Sections *NLL as a function of ensemble size* (NLL with fixed temperature: "with a
    slightly larger than -1") and *Conclusion* ("the power parameter slightly higher
    than the one derived theoretically"). The number is the mean over pools; jackknife
    over networks.
    """
    found = falling(along_n(evidence))
    exponents = [each.laws.exponent for each in found]
    value = jackknife(lambda rows: rows.mean(axis=1), exponents)
    listed = [each[0] for each in exponents]
    return value, (
        f"the mean exponent of {counted(len(found), 'pool')} is {value.value:.3f}, from"
        f" {min(listed):.2f} to {max(listed):.2f}"
    )


def _compared(objectives: list[list[Floats]], what: str) -> tuple[Estimate, str]:
    """Compare the law's errors with those of the better rival.

    `objectives` has for each pool a column for each form, the law first.
    """
    tables = [np.log(np.maximum(np.column_stack(each), 1e-15)) for each in objectives]

    def ahead(rows: Floats) -> Floats:
        mean = rows.mean(axis=1)
        short: Floats = mean[:, 0] - mean[:, 1:].min(axis=1)
        return short

    value = jackknife(ahead, tables).through(math.exp)
    mean = np.mean([each[0] for each in tables], axis=0)
    rival = FORMS[1 + int(mean[1:].argmin())].name
    listed = ", ".join(
        f"{form.name} {math.exp(left):.2g}"
        for form, left in zip(FORMS, mean, strict=True)
    )
    wins = sum(each[0].argmin() == 0 for each in tables)
    return value, (
        f"{what} {value.value:.2g} times those of the better rival, the {rival} form"
        f" ({listed} of CNLL); the law is best in {wins} of"
        f" {counted(len(tables), 'pool')}"
    )


@claim(
    "cnll-n-rivals",
    "a power law describes CNLL_n better than exponential and logarithmic forms do",
    section=f"{SECTION}; Prediction based on power laws",
    bounds=Bounds(most=1.0),
)
def better_inside(evidence: Evidence) -> tuple[Estimate, str]:
    """Compare the law with its rivals on the points that all were fitted to.

    Section *Prediction based on power laws*: the laws interpolate CNLL_n on its whole
    range, "providing an argument for using particularly power laws and not other
    functions". The number is the law's weighted relative residual over that of the
    better rival, a geometric mean over pools; jackknife over networks.
    """
    found = along_n(evidence)
    objectives = [
        [fit_form(form, each.n, each.rows).objective for form in FORMS]
        for each in found
    ]
    return _compared(objectives, "the residuals of the law are")


@claim(
    "cnll-n-rivals-ahead",
    "from n = 1 to 4 a power law predicts larger ensembles better than other forms do",
    section="Prediction based on power laws",
    bounds=Bounds(most=1.0),
)
def better_ahead(evidence: Evidence) -> tuple[Estimate, str]:
    """Compare the law with its rivals on points that none was fitted to.

    Section *Prediction based on power laws*, last paragraph: "CNLL fitted on a short
    segment of n approximates well the full range, providing an argument for using
    particularly power laws and not other functions". All forms are fitted to n = 1 to 4
    of all networks, and read at every larger n that at least three ensembles make, 6 at
    least. The number is the law's relative error over that of the better rival, a
    geometric mean over pools; jackknife over networks.
    """
    objectives = []
    for each in along_n(evidence):
        first, rest = np.isin(each.n, PAPER_SIZES), each.n > PAPER_SIZES[-1]
        if first.sum() < len(PAPER_SIZES) or each.n.max() < 6:
            continue
        fits = [fit_form(form, each.n[first], each.rows[:, first]) for form in FORMS]
        off = [1 - found(each.n[rest]) / each.rows[:, rest] for found in fits]
        objectives.append([np.sqrt(np.mean(left**2, axis=1)) for left in off])
    if not objectives:
        raise InputError(
            "no pool has seven networks, so that there is nothing to predict beyond"
            " the four points of a fit; train more"
        )
    return _compared(objectives, "beyond n = 4 the errors of the law are")


@claim(
    "gain-size",
    "the gain b of CNLL_n falls with the size of the networks, where they are large",
    section=SECTION,
    bounds=Bounds(most=0.0),
)
def gain_along_size(evidence: Evidence) -> tuple[Estimate, str]:
    """Find how the gain of ensembling changes with the size of the networks.

    Section *NLL as a function of ensemble size* (NLL with calibration): "for
    WideResNet, parameter b decreases, as s becomes large", for VGG in a light form. The
    number is the exponent of b along s, over the larger half of the sizes and at least
    three; jackknife over networks.
    """
    known = falling(sized(along_n(evidence)))
    large = known[-max(3, (len(known) + 1) // 2) :]
    value = jackknife(
        slope_along(np.log([each.size for each in large])),
        [each.log_gains for each in large],
    )
    ends = [each.laws.gain[0] for each in (large[0], large[-1])]
    return value, (
        f"over the {len(large)} largest sizes b goes as s^{value.value:.2f}, from"
        f" {ends[0]:.3g} nats of {large[0].pool!r} to {ends[1]:.3g} of"
        f" {large[-1].pool!r}"
    )


def quadratic_mean(rows: Floats) -> Floats:
    """Average one number of each pool."""
    mean: Floats = np.sqrt(np.mean(rows**2, axis=1))
    return mean


def slope_along(x: Floats) -> Callable[[Floats], Floats]:
    """Make the function that fits a line to one number of each pool."""
    away = x - x.mean()

    def slope(rows: Floats) -> Floats:
        fitted: Floats = rows @ away / (away @ away)
        return fitted

    return slope


@claim(
    "nll-n-law",
    "NLL_n at a fixed temperature follows a power law, whatever the temperature",
    section=f"{SECTION}; appendix NLL with fixed temperature as a function of ensemble"
    " size",
    bounds=Bounds(most=_CLOSE),
)
def nll_law(evidence: Evidence) -> tuple[Estimate, str]:
    """Find how far NLL_n(τ) is from its law.

    Section *NLL as a function of ensemble size* (NLL with fixed temperature): "for all
    temperatures, NLL_n(τ) with fixed τ can be closely approximated with a power law",
    and the appendix *NLL with fixed temperature as a function of ensemble size*. The
    number is the RMSE as a part of the fall along n, of each pool at the temperature
    where it is largest, and a quadratic mean over pools; jackknife over networks.
    """
    found = along_temperature(evidence)
    worst = max(found, key=lambda each: float(each.shares[0].max()))
    at = int(worst.shares[0].argmax())
    value = jackknife(quadratic_mean, [each.shares.max(axis=1) for each in found])
    return value.at_least_0, (
        f"over {len(worst.profile.temperature)} temperatures of"
        f" {counted(len(found), 'pool')} the laws leave residuals of up to"
        f" {value.value:.2%} of the fall along n, at most {worst.shares[0, at]:.2%}"
        f" ({worst.pool!r} at"
        f" τ = {worst.profile.temperature[at]:.2g}: RMSE {worst.rmse[0, at]:.2g} nats)"
    )
