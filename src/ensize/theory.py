"""Theory: Propositions 1 and 2 of the paper, the law before anything is fitted.

For one object, whose networks give its true class probabilities with mean μ,
variance σ² and third central moment κ,

    NLL_n = -log μ + 1/n · σ²/2μ² + 1/n² · (3σ⁴/4μ⁴ - κ/3μ³) + O(1/n³),

and NLL_n of a test set is the mean over its objects. The first two terms are
Proposition 1; the third is what its proof (appendix, *Proof of Proposition 1*)
leaves when E(μ - p̄)³ = -κ/n² and E(μ - p̄)⁴ = 3σ⁴/n² + O(1/n³) are put in.

A pool of ℓ networks knows μ only through its own mean, and -log of that is too
high by σ²/2ℓμ². The limit and the coefficient of 1/n are therefore read off NLL_ℓ
and the mean of all NLL_{ℓ-1}, which have no bias: the delete-one jackknife.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, positive, viewed, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ensize.predictions import Predictions

    Floats = NDArray[np.float64]

# Probabilities worked on at a time; some six arrays of this many are held.
_BLOCK = 500_000
_TINY = float(np.finfo(np.float64).tiny)
_EPS = float(np.finfo(np.float64).eps)
_ROUNDED = 1e-6  # by how much a float32 probability may pass 1


@dataclass(frozen=True)
class Expansion:
    """NLL_n = limit + first/n + second/n² + …, in nats, mean over objects.

    Parameters
    ----------
    limit
        NLL of infinitely many networks.
    first
        The coefficient of 1/n.
    second
        The coefficient of 1/n²; None from a pool, where the third moments of a
        handful of networks do not tell even its sign.
    plug_in
        The paper's formula for `first` with the pool's mean and unbiased variance;
        None where moments are exact.
    limit_se, first_se
        Standard errors over networks, by the jackknife.
    """

    limit: float
    first: float
    second: float | None = None
    plug_in: float | None = None
    limit_se: float | None = None
    first_se: float | None = None

    @classmethod
    def of_moments(
        cls,
        mean: ArrayLike,
        variance: ArrayLike,
        *,
        third: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> Expansion:
        """Expand where each object's moments are known (Proposition 1).

        A network that says 0.9 or 0.3 with equal chance has μ = 0.6 and σ = 0.3:

        >>> expansion = Expansion.of_moments([0.6], [0.09], third=[0.0])
        >>> round(expansion.limit, 6), expansion.first, expansion.second
        (0.510826, 0.125, 0.046875)

        An ensemble of two says 0.9, 0.6, 0.6 or 0.3:

        >>> print(-np.log([0.9, 0.6, 0.6, 0.3]).mean().round(4))
        0.5827
        >>> print(expansion(2).round(4), expansion(2, order=2).round(4))
        0.5733 0.585
        """
        mu = np.asarray(mean, np.float64)
        first = np.asarray(variance, np.float64) / (2 * mu**2)
        # 3σ⁴/4μ⁴ is three times the square of the first coefficient.
        second = 3 * first**2 - np.asarray(third, np.float64) / (3 * mu**3)
        shares = None if weights is None else np.asarray(weights, np.float64)
        terms = (-np.log(mu), first, second)
        return cls(*(float(np.average(each, weights=shares)) for each in terms))

    def __call__(self, n: ArrayLike, *, order: int = 1) -> Floats:
        """Say NLL_n to this order in 1/n; `n` may be infinite."""
        sizes = np.asarray(n, np.float64)
        if not (sizes >= 1).all():
            raise InputError(f"n is {n!r}; an ensemble has at least one network")
        if whole("order", order, 1, 2) == 2 and self.second is None:
            raise InputError("a pool does not tell the term in 1/n²; ask for order 1")
        terms = (self.limit, self.first, self.second or 0.0)[: order + 1]
        value: Floats = np.power.outer(1 / sizes, range(order + 1)) @ terms
        return value


def expand_before(probabilities: Any, *, logarithms: bool = False) -> Expansion:
    """Read Proposition 1 off a pool of at least three networks.

    The temperature, if any, is applied before averaging.

    Parameters
    ----------
    probabilities
        Of the true class, at the temperature asked for: (networks, objects).
    logarithms
        Whether these are their logarithms, as a sketch keeps them.

    Notes
    -----
    With NLL_ℓ of the pool and NLL_{ℓ-1} the mean over the pools that lack one network,

        limit = ℓ NLL_ℓ - (ℓ-1) NLL_{ℓ-1},    first = ℓ(ℓ-1) (NLL_{ℓ-1} - NLL_ℓ):

    the law c + b/n through both, off by about -second/ℓ² and 2 second/ℓ. Over six
    synthetic worlds (10 or 100 classes, noise 0.7 to 2) at the best temperature the
    median bias from six networks is 5 % of the gain NLL_1 - NLL_∞ for the limit,
    where -log μ̂ has 21 %; and 18 % for `first`, where `plug_in` has 46 %. From 64 it
    is 1, 3, 10 and 9 % (benchmarks/estimates.py). The errors are cautious.

    Examples
    --------
    Ten networks say 0.9 or 0.3; let the objects be all that they may say together:

    >>> import itertools
    >>> says = np.transpose(list(itertools.product([0.9, 0.3], repeat=10)))
    >>> expansion = expand_before(says)
    >>> print(round(expansion.limit, 4), np.round(-np.log(0.6), 4))
    0.5103 0.5108
    >>> round(expansion.first, 4), 0.3**2 / (2 * 0.6**2)
    (0.135, 0.125)
    """
    given = viewed("probabilities", probabilities).astype(np.float64)
    if given.ndim != 2 or 0 in given.shape:
        raise InputError(
            f"probabilities have shape {given.shape}; hand in those of the true class,"
            " (networks, objects)"
        )
    _enough(len(given))
    least, most = (-np.inf, 0.0) if logarithms else (0.0, 1.0)
    wrong = ~((given >= least) & (given <= most + _ROUNDED)) | np.isinf(given)
    if wrong.any():
        network, item = np.argwhere(wrong)[0]
        raise InputError(
            f"network {network} has {given[network, item]} at object {item}, outside"
            f" {least:g} to {most:g}; hand in probabilities, or their logarithms with"
            " logarithms=True"
        )
    # As everywhere, a probability of 0 stands for the smallest number of its type.
    logs = given if logarithms else np.log(np.maximum(given, _TINY))
    log_mean, ratios = _relative(logs)
    rest = _sum_of_others(ratios)
    nll, count = -log_mean, len(ratios)
    limit, first, limit_se = _jackknife(nll, nll - np.log(rest / (count - 1)))
    return Expansion(
        limit,
        first,
        plug_in=float(ratios.var(axis=0, ddof=1).mean() / 2),
        limit_se=limit_se,
        first_se=_first_se(nll, ratios, rest),
    )


def expand_after(predictions: Predictions, *, temperature: float = 1.0) -> Expansion:
    """Expand NLL_n where the temperature is applied after averaging.

    The appendix (*Power law in NLL with temperature applied after averaging*) has
    f(p) = -γ log p_y + log Σ p_k^γ with γ = 1/τ and, through its Hessian,

        first = ½ [γ Var(p_y)/μ_y² - γ² Var(Σ μ_k^{γ-1} p_k)/(Σ μ_k^γ)²
                   + γ(γ-1) Σ μ_k^{γ-2} Var(p_k)/Σ μ_k^γ],

    which is σ²/2μ² at τ = 1 and may be negative above. This is `plug_in`; limit and
    `first` come from NLL_ℓ and NLL_{ℓ-1} as in `expand_before`.

    >>> from ensize.predictions import Predictions
    >>> pool = [[[4.0, 0.0, 0.0]], [[3.0, 0.5, 0.0]], [[4.0, 0.0, 1.0]]]
    >>> agreeing = Predictions.of(pool, [0])
    >>> [expand_after(agreeing, temperature=t).first > 0 for t in (1.0, 3.0)]
    [True, False]
    """
    gamma = 1 / positive("temperature", temperature)
    count, objects = predictions.networks, predictions.objects
    _enough(count)
    nll, plug_in = np.empty(objects), np.empty(objects)
    without = np.empty((count, objects))
    rows = max(1, _BLOCK // (count * predictions.classes))
    for start in range(0, objects, rows):
        here = slice(start, min(start + rows, objects))
        true = predictions.targets[here]
        read = (predictions.logits(i, here.start, here.stop) for i in range(count))
        log_mean, ratios = _relative(np.stack([_log_softmax(each) for each in read]))
        nll[here] = _tempered(log_mean, true, gamma)
        plug_in[here] = _hessian(log_mean, ratios, true, gamma)
        rest = _sum_of_others(ratios)
        for i in range(count):
            shifted = log_mean + np.log(rest[i] / (count - 1))
            without[i, here] = _tempered(shifted, true, gamma)
    limit, first, limit_se = _jackknife(nll, without)
    # The error of `first` would need all pairs of networks left out: too dear here.
    return Expansion(limit, first, plug_in=float(plug_in.mean()), limit_se=limit_se)


@dataclass(frozen=True, eq=False)
class Envelope:
    """The least of several laws at each n, and the law that it ends in.

    Parameters
    ----------
    n
        Ensemble sizes.
    values
        LE_n, the least of the laws at n.
    best
        Which law that is; of equals the one with the least limit.
    limit, gain
        c* and b* of the law that is the envelope from n = `settled` on.
    settled
        The least n, not rounded, from which on no law is below that one.
    """

    n: Floats
    values: Floats
    best: NDArray[np.intp]
    limit: float
    gain: float
    settled: float


def lower_envelope(
    limits: ArrayLike, gains: ArrayLike, *, n: ArrayLike, exponent: float = -1.0
) -> Envelope:
    """Take the least of the laws c(τ) + b(τ)·n^a at each n (Proposition 2).

    Along n the best law's limit never rises and its gain never falls; in the end
    the envelope is the law with the least limit, among equals with the least gain.

    Parameters
    ----------
    limits, gains
        c(τ) and b(τ) at the temperatures of a grid.
    n
        Ensemble sizes, infinity included.
    exponent
        a; theory says -1.

    Examples
    --------
    >>> envelope = lower_envelope([0.5, 0.4], [0.1, 0.3], n=[1, 3, np.inf])
    >>> envelope.best
    array([0, 1, 1])
    >>> envelope.limit, envelope.gain, round(envelope.settled, 12)
    (0.4, 0.3, 2.0)
    """
    c, b = (np.asarray(x, np.float64) for x in (limits, gains))
    sizes = np.asarray(n, np.float64)
    if c.ndim != 1 or c.shape != b.shape or not c.size:
        raise InputError(
            f"limits have shape {c.shape} and gains {b.shape}; hand in one of each for"
            " every temperature"
        )
    if not np.isfinite([c, b]).all():
        raise InputError("a limit or a gain is not finite; leave that temperature out")
    if not (sizes >= 1).all():
        raise InputError(f"n is {n!r}; an ensemble has at least one network")
    if not exponent < 0:
        raise InputError(f"exponent is {exponent!r}; a law falls only if it is below 0")
    order = np.lexsort((b, c))  # so that of equals the first is taken
    laws = c[order] + b[order] * (sizes**exponent)[..., None]
    best = order[laws.argmin(axis=-1)]
    final = order[0]
    # A law with a smaller gain is above from c_t + b_t n^a = c* + b* n^a on.
    lower = b < b[final]
    with np.errstate(over="ignore"):
        crossings = ((c[lower] - c[final]) / (b[final] - b[lower])) ** (1 / exponent)
    return Envelope(
        n=sizes,
        values=laws.min(axis=-1),
        best=best,
        limit=float(c[final]),
        gain=float(b[final]),
        settled=float(max([1.0, *crossings])),
    )


def _enough(count: int) -> None:
    if count < 3:
        raise InputError(f"there are {count} networks; the expansion needs three")


def _relative(logs: Floats) -> tuple[Floats, Floats]:
    """Return log μ and p/μ, from logarithms, over networks in the first axis."""
    peak = logs.max(axis=0)
    scaled = np.exp(logs - peak)
    mean = scaled.mean(axis=0)
    return peak + np.log(mean), scaled / mean


def _sum_of_others(ratios: Floats) -> Floats:
    """Sum p_j/μ over j ≠ i, without the subtraction that would lose small ones."""
    rest = np.zeros_like(ratios)
    rest[1:] += np.cumsum(ratios[:-1], axis=0)
    rest[:-1] += np.cumsum(ratios[:0:-1], axis=0)[::-1]
    return np.maximum(rest, _TINY)  # where all others underflow, a finite log


def _jackknife(nll: Floats, without: Floats) -> tuple[float, float, float]:
    """Find limit, first and Tukey's error of the limit, from NLL_ℓ and all NLL_{ℓ-1}.

    No object's limit is below 0, as no probability is above 1. This bites where
    one network alone carries an object: at temperatures far below the best.
    """
    count = len(without)
    limit = np.maximum(count * nll - (count - 1) * without.mean(axis=0), 0.0)
    first = count * (nll - limit)
    error = (count - 1) * np.std(without.mean(axis=1), ddof=1) / np.sqrt(count)
    return float(limit.mean()), float(first.mean()), float(error)


def _first_se(nll: Floats, ratios: Floats, rest: Floats) -> float:
    """Repeat the jackknife in each pool that lacks a network."""
    count = len(ratios)
    firsts = np.empty(count)
    for i in range(count):
        others = np.delete(ratios, i, axis=0)
        pairs = np.maximum(rest[i] - others, _EPS) / (count - 2)
        lacking = nll - np.log(rest[i] / (count - 1))
        firsts[i] = _jackknife(lacking, nll - np.log(pairs))[1]
    return float(np.sqrt(count - 1) * np.std(firsts))


def _log_softmax(logits: NDArray[Any]) -> Floats:
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


def _tempered(log_mean: Floats, true: NDArray[np.int64], gamma: float) -> Floats:
    """Compute f(μ) = -γ log μ_y + log Σ μ_k^γ, which is -log softmax(γ log μ)_y."""
    f: Floats = -_log_softmax(gamma * log_mean)[np.arange(len(true)), true]
    return f


def _hessian(
    log_mean: Floats, ratios: Floats, true: NDArray[np.int64], gamma: float
) -> Floats:
    """Compute ½ Σ_{kk'} cov(p_k, p_k') ∂²f, without the matrix.

    In w_k = μ_k^γ / Σ μ^γ and r_k = p_k/μ_k the appendix's Hessian has no negative
    power of a small μ_k: ½ [γ Var(r_y) - γ² Var(Σ w_k r_k) + γ(γ-1) Σ w_k Var(r_k)].
    """
    weights = np.exp(_log_softmax(gamma * log_mean))
    spread = ratios.var(axis=0, ddof=1)
    own = spread[np.arange(len(true)), true]
    together = np.einsum("ok,iok->io", weights, ratios).var(axis=0, ddof=1)
    each = (weights * spread).sum(axis=1)
    curvature: Floats = gamma * (own - gamma * together + (gamma - 1) * each) / 2
    return curvature
