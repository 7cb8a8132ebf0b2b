"""How ensembles are drawn from a pool, and which networks are the odd ones out."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Draw = Literal["all", "disjoint"]
DRAWS: tuple[Draw, ...] = get_args(Draw)

# Every subset is scored where there are no more than this many.
_AFFORDABLE = 256
# Otherwise at least this many, and each network in equally many.
_AT_LEAST = 16


def disjoint(networks: int, n: int, seed: int = 0) -> NDArray[np.intp]:
    """Cut a shuffled pool into ⌊ℓ/n⌋ ensembles without a common member.

    The paper's way (section *Experimental setup*).

    >>> disjoint(7, 3).shape
    (2, 3)
    """
    order = np.random.default_rng(seed).permutation(networks)
    groups = networks // n
    return order[: groups * n].reshape(groups, n)


def subsets(networks: int, n: int, seed: int = 0) -> NDArray[np.intp]:
    """List every ensemble of n networks, or draw some in which all appear equally.

    >>> len(subsets(6, 3)), subsets(64, 48).shape
    (20, (16, 48))
    """
    if math.comb(networks, n) <= _AFFORDABLE:
        return np.array(list(itertools.combinations(range(networks), n)), np.intp)
    # The least number of ensembles in which each network can appear equally often.
    step = networks // math.gcd(networks, n)
    return balanced(networks, n, step * math.ceil(_AT_LEAST / step), seed)


def balanced(networks: int, n: int, ensembles: int, seed: int = 0) -> NDArray[np.intp]:
    """Draw ensembles of n networks by dealing out shuffled decks.

    Where an ensemble takes the end of one deck and the beginning of the next, that
    beginning is drawn among the networks which it does not hold yet. After whole
    decks each network has appeared equally often.
    """
    random = np.random.default_rng((seed, n))
    dealt: list[int] = []
    while len(dealt) < ensembles * n:
        held = dealt[len(dealt) - len(dealt) % n :]
        deck = random.permutation(networks)
        if held:
            fresh = deck[~np.isin(deck, held)][: n - len(held)]
            rest = deck[~np.isin(deck, fresh)]
            deck = np.concatenate([fresh, rest])
        dealt.extend(deck.tolist())
    return np.array(dealt[: ensembles * n], np.intp).reshape(ensembles, n)


def odd_ones_out(nll: NDArray[np.float64], chance: float) -> NDArray[np.intp]:
    """Find the networks that did not train.

    Parameters
    ----------
    nll
        NLL of each network at its own best temperature.
    chance
        NLL of somebody who knows only how frequent the classes are.

    A network is odd if it gains over chance less than a twentieth of what the best
    one gains, or if it lies further from the median of the others than ten times
    the usual distance and a tenth of the way to chance: both, so that neither a
    pool of near twins nor one with a wide spread loses a sound network.

    >>> odd_ones_out(np.array([1.0, 1.1, 0.9, 1.0, 2.3]), chance=2.302)
    array([4])
    """
    gained = chance - nll
    hopeless = gained < gained.max() / 20
    if gained.max() <= chance / 100:  # none of them trained
        return np.array([], np.intp)
    sound = nll[~hopeless]
    median = float(np.median(sound))
    usual = 1.4826 * float(np.median(np.abs(sound - median)))
    far = nll - median > max(10 * usual, (chance - median) / 10)
    return np.flatnonzero(hopeless | (far & (len(sound) > 2)))


def chance_level(targets: NDArray[np.int64]) -> float:
    """Compute the NLL of always answering with the frequencies of the classes.

    Their entropy, with Miller and Madow's correction for the classes' finite counts.

    >>> round(chance_level(np.repeat(np.arange(10), 1000)), 3)
    2.303
    """
    counts = np.unique(targets, return_counts=True)[1]
    share = counts / len(targets)
    correction = (len(counts) - 1) / (2 * len(targets))
    return float(-(share * np.log(share)).sum() + correction)
