"""Comparisons: claims that set one study against another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.claims.along_n import slope_along
from ensize.claims.estimates import Estimate, jackknife
from ensize.claims.points import Floats, along_n, falling, sized
from ensize.claims.verdicts import Bounds, claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.evidence import Evidence


@claim(
    "unregularized-gain",
    "without regularization the gain b falls more steeply with the size",
    section="NLL as a function of ensemble size; appendix CNLL of the ensemble of"
    " unregularized networks",
    bounds=Bounds(most=0.0),
    compares=True,
)
def unregularized_gain(studies: Sequence[Evidence]) -> tuple[Estimate, str]:
    """Compare how the gain of ensembling falls with and without regularization.

    Appendix *CNLL of the ensemble of unregularized networks*: "the decrease of
    parameter b in the setting without regularization is much larger, than in the
    standard setting with regularization". The number is the exponent of b along s
    without weight decay and dropout, minus that with them; jackknife over networks. It
    takes one study of each kind, of the same family and test set.
    """
    without, regular = _pair(studies)
    both = [falling(sized(along_n(each))) for each in (without, regular)]
    slopes = [slope_along(np.log([each.size for each in pools])) for pools in both]
    count = len(both[0])

    def apart(rows: Floats) -> Floats:
        difference: Floats = slopes[0](rows[:, :count]) - slopes[1](rows[:, count:])
        return difference

    gains = [each.log_gains for pools in both for each in pools]
    value = jackknife(apart, gains)
    whole = np.array([[each[0] for each in gains]])
    exponents = slopes[0](whole[:, :count])[0], slopes[1](whole[:, count:])[0]
    return value, (
        f"b goes as s^{exponents[0]:.2f} without regularization ({without.name}) and as"
        f" s^{exponents[1]:.2f} with it ({regular.name})"
    )


def _pair(studies: Sequence[Evidence]) -> tuple[Evidence, Evidence]:
    """Find two studies that differ in whether they regularize."""
    for without in studies:
        for regular in studies:
            if without.unregularized and not regular.unregularized:
                one, other = without.pools[0], regular.pools[0]
                same = np.array_equal(one.targets, other.targets)
                if same and one.pool.family == other.pool.family:
                    return without, regular
    raise InputError(
        "this compares a study without weight decay and dropout with one that has them,"
        " of the same family and test set; give the stores of both"
    )
