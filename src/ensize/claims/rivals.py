"""Rivals: other forms that a curve along n might have, fitted as the law is.

    power law      c + b·n^-r
    exponential    c + b·exp(-r(n - 1))
    logarithmic    c - b·log n

All minimize the squares of the relative residuals with weights 1/n, over c ≥ 0, b ≥ 0
and r > 0, and without a prior, so that no form has an advantage but its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

Floats = np.ndarray[Any, np.dtype[np.float64]]

# Rates that are tried first, and how often the best one's neighborhood is searched with
# so many more: down to 10⁻⁸ of a rate.
_FIRST, _ZOOMS, _FINE = 64, 6, 17


@dataclass(frozen=True)
class Form:
    """A form: its shape at a rate, and between which rates it is sought."""

    name: str
    shape: Callable[[Floats, Floats], Floats]
    rates: tuple[float, float]


POWER = Form("power law", lambda n, r: n**-r, (0.01, 8.0))
EXPONENTIAL = Form("exponential", lambda n, r: np.exp(-r * (n - 1)), (1e-3, 8.0))
LOGARITHMIC = Form("logarithmic", lambda n, r: -np.log(n) + 0 * r, (1.0, 1.0))
FORMS = (POWER, EXPONENTIAL, LOGARITHMIC)


@dataclass(frozen=True, eq=False)
class Shaped:
    """A form fitted to many curves.

    Parameters
    ----------
    form
        Which one.
    limit, gain, rate
        Its numbers, one for each curve.
    objective
        The root of the weighted mean of the squared relative residuals.
    """

    form: Form
    limit: Floats
    gain: Floats
    rate: Floats
    objective: Floats

    def __call__(self, n: Floats) -> Floats:
        """Read every curve, (curves, len(n))."""
        shape = self.form.shape(n, self.rate[:, None])
        value: Floats = self.limit[:, None] + self.gain[:, None] * shape
        return value


def fit_form(form: Form, n: Floats, curves: Floats) -> Shaped:
    """Fit a form to curves, (curves, points).

    >>> n = np.arange(1.0, 9)
    >>> found = fit_form(EXPONENTIAL, n, (1 + 0.5 * np.exp(-0.7 * (n - 1)))[None])
    >>> found.limit.round(6), found.gain.round(6), found.rate.round(6)
    (array([1.]), array([0.5]), array([0.7]))
    """
    y = curves[:, None]
    w = 1 / (n * y**2)
    w /= w.sum(axis=2, keepdims=True)

    def mean(v: Floats) -> Floats:
        averaged: Floats = (w * v).sum(axis=2, keepdims=True)
        return averaged

    def at(rates: Floats) -> tuple[Floats, Floats, Floats]:
        z = form.shape(n, rates[:, :, None])
        dz, dy = z - mean(z), y - mean(y)
        gain = mean(dz * dy) / mean(dz * dz)
        below = mean(y) - gain * mean(z) < 0  # then c = 0
        gain = np.where(below, mean(z * y) / mean(z * z), gain).clip(0)
        limit = np.where(below, 0.0, mean(y) - gain * mean(z))
        # In the same weights up to a factor: the relative residuals.
        left = 1 - (limit + gain * z) / y
        plain = (left**2 / n).sum(axis=2) / (1 / n).sum()
        return limit[:, :, 0], gain[:, :, 0], plain

    tried = np.geomspace(*form.rates, _FIRST) if form.rates[0] < form.rates[1] else [1]
    rates = np.tile(np.asarray(tried, np.float64), (len(curves), 1))
    every = np.arange(len(curves))
    limit, gain, objective = at(rates)
    best = objective.argmin(axis=1)
    for _ in range(_ZOOMS if len(tried) > 1 else 0):
        last = rates.shape[1] - 1
        low, high = (
            rates[every, (best - 1).clip(0)],
            rates[every, (best + 1).clip(0, last)],
        )
        rates = np.geomspace(low, high, _FINE, axis=1)
        limit, gain, objective = at(rates)
        best = objective.argmin(axis=1)
    chosen = (limit[every, best], gain[every, best], rates[every, best])
    return Shaped(form, *chosen, np.sqrt(objective[every, best]))
