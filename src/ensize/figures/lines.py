"""Lines: how laws are drawn and recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.evidence import Evidence
    from ensize.laws import Fit

Floats = np.ndarray[Any, np.dtype[np.float64]]

# What is drawn of laws, each in axes of its own: attributes of fits, with labels.
PARAMETERS = (
    ("limit", "limit c (nats)"),
    ("gain", "gain b (nats)"),
    ("exponent", "exponent a"),
    ("rmse_log2", "RMSE (log₂)"),
)
# How captions say what the last of them is.
RMSE_SAYS = "RMSE is that of log₂(y − c), absent where a point lies below c"


def draw_law(
    axes: Sequence[Any], m: Any, values: Floats, law: Fit, **look: Any
) -> list[dict[str, Any]]:
    """Draw points with their law on two axes: plain, and as distances to the limit.

    Points at or below the limit have no place on the second, which is logarithmic.
    """
    at = np.asarray(m, np.float64)
    plain, logs = axes
    style = {"mec": "none", "ls": "none", "marker": "o", **look}
    plain.plot(at, values, **style)
    if np.isfinite(law.exponent):
        line = np.geomspace(at.min(), at.max(), 100)
        plain.plot(line, law.law(line), color=look["color"])
        above = values - law.limit
        logs.plot(at[above > 0], above[above > 0], **style)
        logs.plot(line, law.law(line) - law.limit, color=look["color"])
    return [
        {
            "value": float(value),
            "law": float(law.law(each)),
            "above_limit": float(value - law.limit),
        }
        for each, value in zip(at, values, strict=True)
    ]


def law_record(found: Evidence, k: int, law: Fit, **more: float) -> dict[str, Any]:
    """Record the law of a pool."""
    pool = found.pools[k].pool
    names = ("limit", "gain", "exponent", "rmse", "rmse_log2")
    return {
        "store": found.name,
        "pool": pool.name,
        "size": pool.size,
        **{name: float(value) for name, value in more.items()},
        **{name: getattr(law, name) for name in names},
        "status": str(law.status),
    }


def law_said(name: str, law: Fit, m: str = "n") -> str:
    """Write a law as a formula, or what became of it.

    >>> from ensize.laws import PowerLaw, fit
    >>> law = PowerLaw(0.5, 0.25, -0.9)
    >>> law_said("CNLL", fit([1, 2, 4, 8], law([1, 2, 4, 8])))
    'CNLL = 0.5 + 0.25·n^-0.9'
    """
    if not np.isfinite(law.exponent):
        return f"{name}: {law.status}"
    return f"{name} = {law.limit:.4g} + {law.gain:.3g}·{m}^{law.exponent:.3g}"
