"""Accuracy and Brier score of many ensembles: what all classes are needed for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.scores.means import blocks_of
from ensize.threads import in_threads, workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.predictions import Predictions


def accuracy_and_brier(
    pool: Predictions, shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute accuracy and Brier score of each ensemble, at τ = 1.

    With w the shares, the Brier score is a quadratic form,

        mean over objects of Σ_k (p̄_k - [k = y])² = w'Gw - 2 w'u + 1,

    where G holds the mean products of two networks' probabilities and u the mean
    probability of the true class: no ensemble need be formed. For the accuracy only
    those classes matter that some network prefers to the true one.
    """

    def block(some: slice) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
        p = _probabilities(pool, some)
        truth = pool.targets[some]
        flat = p.reshape(pool.networks, -1)
        of_truth = p[:, np.arange(len(truth)), truth]
        right = _right_answers(p, of_truth, truth, shares)
        return flat @ flat.T, of_truth.sum(axis=1), right

    products, own = np.zeros((pool.networks, pool.networks)), np.zeros(pool.networks)
    right = np.zeros(len(shares))
    # Reading a few rows costs as much as reading some more, while they are short.
    numbers = pool.networks * pool.classes
    blocks = blocks_of(pool.objects, max(min(numbers, 20_000), numbers // 10))
    for some_products, some_own, some_right in in_threads(block, blocks):
        products += some_products
        own += some_own
        right += some_right
    products, own = products / pool.objects, own / pool.objects
    quadratic = np.einsum("ei,ij,ej->e", shares, products, shares, optimize=True)
    return right / pool.objects, quadratic - 2 * shares @ own + 1


def _probabilities(pool: Predictions, some: slice) -> NDArray[Any]:
    """Read some objects' probabilities at τ = 1, (networks, objects, classes)."""
    shape = (pool.networks, some.stop - some.start, pool.classes)
    p = workspace("probabilities", shape, pool.dtype)
    for i in range(pool.networks):
        logits = pool.logits(i, some.start, some.stop)
        np.subtract(logits, logits.max(axis=1, keepdims=True), out=p[i])
        np.exp(p[i], out=p[i])
        np.divide(p[i], np.einsum("ok->o", p[i])[:, None], out=p[i])
    return p


def _right_answers(
    p: NDArray[Any],
    of_truth: NDArray[Any],
    truth: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Count the objects on which the true class is each ensemble's first choice.

    Of equally probable classes the first counts, as with argmax. A class that no
    network prefers to the true one is no rival. The mean lead over a rival of n
    among ℓ networks differs from that of all by at most √(ℓ/n - 1) standard
    deviations (Cauchy and Schwarz), so that most rivals of large ensembles are settled
    without looking at them.
    """
    networks, objects, classes = p.shape
    rivals = np.logical_or.reduce(p >= of_truth[:, :, None], axis=0)
    rivals[np.arange(objects), truth] = False
    where, rival = np.nonzero(rivals)  # sorted by object
    of_rival = p.reshape(networks, -1).take(where * classes + rival, axis=1)
    lead = of_truth.take(where, axis=1) - of_rival
    mean = lead.mean(axis=0)
    away = lead - mean
    spread = np.sqrt(np.einsum("ir,ir->r", away, away) / networks)
    right = np.full(len(shares), objects)
    # Similar sizes together: few and large products.
    sizes = np.count_nonzero(shares, axis=1)
    for chosen in np.array_split(np.argsort(sizes), -(-len(shares) // 64)):
        # With a little room for rounding.
        reach = spread * np.sqrt(networks / sizes[chosen].min() - 1)
        reach += 1e-5 * np.abs(mean) + 1e-30
        settled = np.zeros(objects, bool)
        settled[where[mean < -reach]] = True  # lost by all of these ensembles
        right[chosen] -= np.count_nonzero(settled)
        matter = np.flatnonzero((mean <= reach) & ~settled[where])
        if not len(matter):
            continue
        leads = shares[chosen].astype(p.dtype) @ lead.take(matter, axis=1)
        # A tie is lost to an earlier class: the least lead that is no loss.
        earlier = rival[matter] < truth[where[matter]]
        enough = np.where(earlier, np.finfo(p.dtype).tiny, 0).astype(p.dtype)
        begins = np.flatnonzero(np.diff(where[matter], prepend=-1))
        lost = np.logical_or.reduceat(leads < enough, begins, axis=1)
        right[chosen] -= lost.sum(axis=1)
    return right
