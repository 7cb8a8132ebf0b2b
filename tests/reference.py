"""The slow way: everything in float64, one ensemble, one temperature at a time."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp


def log_means(logits, tau=1.0, apply="before"):
    """Log-probabilities of the ensemble of all given networks, (objects, classes)."""
    logits = np.asarray(logits, np.float64)
    if apply == "before":
        logs = log_softmax(logits / tau, axis=2)
        return logsumexp(logs, axis=0) - np.log(len(logits))
    mean = logsumexp(log_softmax(logits, axis=2), axis=0) - np.log(len(logits))
    return log_softmax(mean / tau, axis=1)


def nll(logits, targets, tau=1.0, apply="before"):
    logs = log_means(logits, tau, apply)
    return float(-logs[np.arange(len(targets)), targets].mean())


def best(logits, targets, apply="before", low=1 / 200, high=200.0, points=241):
    """The least NLL over temperatures, by brute force; and the temperature."""
    grid = np.linspace(np.log(low), np.log(high), points)

    def of(u):
        return nll(logits, targets, np.exp(u), apply)

    values = np.array([of(u) for u in grid])
    found = (values.min(), grid[values.argmin()])
    inner = (values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])
    for i in np.flatnonzero(inner) + 1:
        bounds = (grid[i - 1], grid[i + 1])
        r = minimize_scalar(
            of, bounds=bounds, method="bounded", options={"xatol": 1e-10}
        )
        found = min(found, (r.fun, r.x))
    return float(found[0]), float(np.exp(found[1]))


def cross_validated(logits, targets, firsts, apply="before"):
    """CNLL by test-time cross-validation over given first halves."""
    results = []
    for first in firsts:
        for chooses, scores in ((first, ~first), (~first, first)):
            _, tau = best(logits[:, chooses], targets[chooses], apply)
            results.append(nll(logits[:, scores], targets[scores], tau, apply))
    return float(np.mean(results))


def make_pool(
    networks=4, objects=60, classes=5, *, noise=1.0, signal=1.5, scale=1.0, seed=0
):
    """Logits of networks that agree on easy objects and differ on hard ones."""
    random = np.random.default_rng(seed)
    targets = random.integers(0, classes, objects)
    common = random.standard_normal((objects, classes))
    common[np.arange(objects), targets] += signal * random.gamma(1.5, 1, objects)
    logits = common + noise * random.standard_normal((networks, objects, classes))
    return scale * logits, targets
