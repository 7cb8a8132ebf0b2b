import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from ensize import InputError, Predictions, Sketch
from ensize.scores import halvings, score_ensembles, shares_of
from ensize.scores.answers import accuracy_and_brier
from ensize.scores.means import log_means
from ensize.scores.search import sketch_of
from ensize.temperatures import calibrate
from reference import make_pool

POOLS = {
    "ordinary": ({"networks": 4, "objects": 300, "classes": 10}, np.float32),
    "float64": ({"networks": 4, "objects": 300, "classes": 10}, np.float64),
    "float16": ({"networks": 3, "objects": 200, "classes": 10}, np.float16),
    "two classes": ({"networks": 3, "objects": 100, "classes": 2}, np.float32),
    "a thousand": ({"networks": 2, "objects": 60, "classes": 1000}, np.float32),
    "extreme": ({"networks": 3, "objects": 80, "scale": 3000}, np.float32),
    "tiny logits": ({"networks": 3, "objects": 80, "scale": 1e-3}, np.float64),
    "few objects": ({"networks": 3, "objects": 9, "classes": 3}, np.float32),
}


def pool_of(kind):
    options, dtype = POOLS[kind]
    logits, targets = make_pool(**options)
    return logits.astype(dtype), targets


def every_subset(networks):
    sizes = range(1, networks + 1)
    return [s for n in sizes for s in itertools.combinations(range(networks), n)]


def shares(subsets, networks):
    return np.vstack([shares_of(np.array([s]), networks) for s in subsets])


def close(found, truth):
    return abs(found - truth) <= 1e-6 * max(1, abs(truth))


@pytest.mark.parametrize("apply", ["before", "after"])
@pytest.mark.parametrize("kind", POOLS)
def test_scores_equal_the_slow_float64_reference(kind, apply):
    logits, targets = pool_of(kind)
    subsets = [(0,), (1,), (0, 1), tuple(range(len(logits)))]
    pool = Predictions.of(logits, targets)
    scores = score_ensembles(pool, shares(subsets, len(logits)), apply=apply)
    # Where the reference looks, in units of the logits' spread.
    unit = np.median(logits.astype(float).std(axis=2))
    for i, members in enumerate(subsets):
        some = logits[list(members)].astype(np.float64)
        p = np.exp(reference.log_means(some))
        onehot = np.eye(p.shape[1])[targets]
        assert close(scores.nll[i], reference.nll(some, targets))
        whole, _ = reference.best(some, targets, apply, unit / 200, unit * 200)
        assert close(scores.cnll_whole[i], whole)
        assert scores.accuracy[i] == (p.argmax(axis=1) == targets).mean()
        assert close(scores.brier[i], ((p - onehot) ** 2).sum(axis=1).mean())
        alone = [reference.nll(each[None], targets) for each in some]
        gap = np.mean(alone) - reference.nll(some, targets)
        assert abs(scores.jensen_gap[i] - gap) <= 1e-6 * max(1, np.mean(alone))


@pytest.mark.parametrize("apply", ["before", "after"])
def test_cross_validation_equals_the_reference(apply):
    logits, targets = make_pool(3, 200, 6, seed=2)
    pool = Predictions.of(logits, targets)
    rows = shares([(0,), (0, 1, 2)], 3)
    scores = score_ensembles(pool, rows, apply=apply, seed=5)
    firsts = halvings(200, seed=5)
    for found, members in zip(scores.cnll, ([0], [0, 1, 2]), strict=True):
        truth = reference.cross_validated(logits[members], targets, firsts, apply)
        assert close(found, truth)


def test_a_fixed_temperature_moves_nll_alone():
    logits, targets = make_pool(3, 200, 6)
    pool, everyone = Predictions.of(logits, targets), np.full((1, 3), 1 / 3)
    plain = score_ensembles(pool, everyone)
    for tau in (0.02, 0.4, 1.7, 30.0):
        fixed = score_ensembles(pool, everyone, temperature=tau)
        assert close(fixed.nll[0], reference.nll(logits, targets, tau))
        assert close(fixed.cnll[0], plain.cnll[0])
        after = score_ensembles(pool, everyone, temperature=tau, apply="after")
        assert close(after.nll[0], reference.nll(logits, targets, tau, "after"))


@pytest.mark.parametrize("apply", ["before", "after"])
def test_separate_predictions_choose_the_temperature(apply):
    logits, targets = make_pool(3, 400, 6, scale=2)
    ours, theirs = slice(0, 250), slice(250, 400)
    everyone = np.full((1, 3), 1 / 3)
    scores = score_ensembles(
        Predictions.of(logits[:, ours], targets[ours]),
        everyone,
        apply=apply,
        calibrate_on=Predictions.of(logits[:, theirs], targets[theirs]),
    )
    _, tau = reference.best(logits[:, theirs], targets[theirs], apply)
    truth = reference.nll(logits[:, ours], targets[ours], tau, apply)
    assert close(scores.cnll[0], truth)
    assert abs(scores.temperatures[0, 0] / tau - 1) < 1e-3


def test_a_temperature_far_from_the_pools_own_is_reached():
    ours, targets = make_pool(2, 100, 4)
    theirs, others = make_pool(2, 100, 4, scale=50, seed=1)
    scores = score_ensembles(
        Predictions.of(ours, targets),
        np.full((1, 2), 0.5),
        calibrate_on=Predictions.of(theirs, others),
    )
    _, tau = reference.best(theirs, others)
    assert close(scores.cnll[0], reference.nll(ours, targets, tau))


def test_a_pool_of_two_scales_is_searched_whole():
    """Networks whose logits differ a hundredfold: before averaging is not convex."""
    logits, targets = make_pool(4, 300, 5, noise=0.7, seed=4)
    logits[2:] *= 100
    subsets = every_subset(4)
    scores = score_ensembles(Predictions.of(logits, targets), shares(subsets, 4))
    for found, members in zip(scores.cnll_whole, subsets, strict=True):
        truth, _ = reference.best(logits[list(members)], targets, low=0.01, high=1000)
        assert close(found, truth)


def test_a_perfect_pool_is_reported_to_end_at_an_edge():
    logits = np.tile(np.eye(3) * 4, (2, 1, 1))
    scores = score_ensembles(Predictions.of(logits, [0, 1, 2]), np.full((1, 2), 0.5))
    assert scores.at_edge.all()
    assert 0 <= scores.cnll_whole[0] < 1e-3


def test_means_of_vastly_different_probabilities_are_exact():
    random = np.random.default_rng(0)
    logs = -np.exp(random.normal(2, 4, (5, 200)))
    rows = shares(every_subset(5), 5)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-6)):
        found = np.add(*log_means(logs.astype(dtype), rows))
        given_logs = logs.astype(dtype).astype(float)
        for row, each in zip(rows, found, strict=True):
            members = given_logs[row > 0]
            truth = np.logaddexp.reduce(members, axis=0) - np.log(len(members))
            np.testing.assert_allclose(each, truth, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("apply", ["before", "after"])
def test_equal_numbers_add_up_without_bias(apply):
    """Objects without an answer: float32 would round all their terms one way."""
    logits, targets = make_pool(2, 5000, 100, seed=1)
    logits[:, ::2] = 0
    scores = score_ensembles(
        Predictions.of(logits.astype(np.float32), targets),
        shares(every_subset(2), 2),
        apply=apply,
        temperature=2.0,
    )
    for found, members in zip(scores.nll, every_subset(2), strict=True):
        truth = reference.nll(logits[list(members)], targets, 2.0, apply)
        assert abs(found - truth) < 2e-7 * truth


class Made:
    """Logits that are made when they are read."""

    dtype = np.dtype(np.float32)

    def __init__(self, seed, shape):
        self.seed, self.shape = seed, shape

    def __getitem__(self, rows):
        start, stop, _ = rows.indices(self.shape[0])
        shape = (stop - start, self.shape[1])
        random = np.random.default_rng((self.seed, start))
        return random.standard_normal(shape, np.float32)


def test_memory_for_a_sketch_does_not_grow_with_networks():
    """Four times the networks would be four times the logits, 0.5 MB each."""
    peaks = []
    for networks in (8, 32):
        pool = Predictions.gather(
            [Made(seed, (25, 5000)) for seed in range(networks)],
            np.arange(25),
            labels=[str(seed) for seed in range(networks)],
        )
        sketch_of(pool.choose([0]))  # what is held for the next one
        tracemalloc.start()
        sketch_of(pool)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Threads are not always at their most at once.
    assert peaks[1] < 2 * peaks[0]


def test_of_equally_probable_classes_the_first_is_the_answer():
    # Symmetric pairs: the mean of the two networks ties exactly.
    logits = np.array([[[2.0, 0, -1], [0, 2, -1]], [[0, 2, -1], [2, 0, -1]]])
    pair = np.array([[0.5, 0.5]])
    first, _ = accuracy_and_brier(Predictions.of(logits, [0, 0]), pair)
    second, _ = accuracy_and_brier(Predictions.of(logits, [1, 1]), pair)
    assert (first[0], second[0]) == (1, 0)


@pytest.mark.parametrize("noise", [0.3, 1.0, 5.0])
def test_accuracy_of_large_pools_equals_argmax(noise):
    logits, targets = make_pool(24, 150, 7, noise=noise)
    random = np.random.default_rng(1)
    subsets = [
        random.permutation(24)[:n] for n in (1, 2, 3, 5, 8, 13, 20, 24) for _ in "abc"
    ]
    accuracy, brier = accuracy_and_brier(
        Predictions.of(logits, targets), shares(subsets, 24)
    )
    for i, members in enumerate(subsets):
        p = np.exp(reference.log_means(logits[members]))
        assert accuracy[i] == (p.argmax(axis=1) == targets).mean()
        truth = ((p - np.eye(7)[targets]) ** 2).sum(axis=1).mean()
        assert brier[i] == pytest.approx(truth, abs=1e-12)


def test_sketches_score_as_predictions_but_for_accuracy():
    logits, targets = make_pool(3, 200, 6)
    pool = Predictions.of(logits, targets)
    rows = shares(every_subset(3), 3)
    full, thin = score_ensembles(pool, rows), score_ensembles(Sketch.of(pool), rows)
    for name in ("nll", "cnll", "cnll_whole", "jensen_gap"):
        np.testing.assert_allclose(getattr(thin, name), getattr(full, name), atol=1e-6)
    assert np.isnan(thin.accuracy).all()
    assert np.isnan(thin.brier).all()


def test_sketches_refuse_a_temperature_after_averaging():
    logits, targets = make_pool(2, 20, 3)
    with pytest.raises(InputError, match="needs the logits"):
        score_ensembles(
            Sketch.of(Predictions.of(logits, targets)), np.eye(2), apply="after"
        )


def test_sketches_refuse_a_temperature_that_they_do_not_hold():
    logits, targets = make_pool(2, 20, 3)
    with pytest.raises(InputError, match="stay between, or record logits"):
        score_ensembles(
            Sketch.of(Predictions.of(logits, targets)), np.eye(2), temperature=1e-3
        )


def test_one_object_cannot_be_cross_validated():
    with pytest.raises(InputError, match="at least 2 objects"):
        score_ensembles(Predictions.of([[[2.0, 0]]], [0]), np.ones((1, 1)))


def test_halves_are_halves_seeded_and_random():
    first = halvings(101, seed=1)
    assert first.shape == (5, 101)
    assert np.all(first.sum(axis=1) == 50)
    np.testing.assert_array_equal(first, halvings(101, seed=1))
    assert (first != halvings(101, seed=2)).any()
    assert len({row.tobytes() for row in first}) == 5


def test_progress_reaches_its_end():
    told = []
    logits, targets = make_pool(3, 50, 4)
    score_ensembles(
        Predictions.of(logits, targets),
        np.eye(3),
        progress=lambda what, share: told.append((what, share)),
    )
    whole = {what for what, share in told if share == 1}
    assert whole == {"looking", "sketching", "averaging"}


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.floats(-300, 300))
def test_a_constant_added_to_an_objects_logits_changes_no_score(seed, shift):
    logits, targets = make_pool(3, 40, 4, seed=seed)
    rows = shares(every_subset(3), 3)
    plain = score_ensembles(Predictions.of(logits, targets), rows)
    random = np.random.default_rng(seed)
    moved = logits + shift * random.random((3, 40, 1))
    shifted = score_ensembles(Predictions.of(moved, targets), rows)
    for name in ("nll", "cnll", "cnll_whole", "brier", "accuracy"):
        one, other = getattr(shifted, name), getattr(plain, name)
        if name == "cnll":  # a half that is all right has no best temperature
            sound = plain.temperatures.min(axis=1) > 0.1
            one, other = one[sound], other[sound]
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_the_order_of_objects_changes_no_whole_score(seed):
    logits, targets = make_pool(3, 20, 4, seed=seed)
    order = np.random.default_rng(seed).permutation(20)
    rows = shares(every_subset(3), 3)
    one = score_ensembles(Predictions.of(logits, targets), rows)
    other = score_ensembles(Predictions.of(logits[:, order], targets[order]), rows)
    for name in ("nll", "cnll_whole", "accuracy", "brier"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), atol=2e-6, rtol=2e-6
        )
    assert one.le_nll(slice(3, 6)) == pytest.approx(other.le_nll(slice(3, 6)), abs=2e-6)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 2.5]))
def test_before_averaging_more_networks_are_never_worse_at_a_fixed_temperature(
    seed, tau
):
    logits, targets = make_pool(5, 15, 4, seed=seed)
    subsets = every_subset(5)
    pool = Predictions.of(logits, targets)
    nll = score_ensembles(pool, shares(subsets, 5), temperature=tau).nll
    means = [
        np.mean([v for v, s in zip(nll, subsets, strict=True) if len(s) == n])
        for n in range(1, 6)
    ]
    assert np.all(np.diff(means) <= 1e-9)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_whole_cnll_is_at_most_le_nll_is_at_most_nll(seed):
    logits, targets = make_pool(4, 15, 4, seed=seed)
    rows = shares([(0, 1), (0, 2), (1, 3)], 4)
    scores = score_ensembles(Predictions.of(logits, targets), rows)
    le_nll = scores.le_nll(slice(None))
    assert scores.cnll_whole.mean() <= le_nll + 1e-9
    assert le_nll <= scores.nll.mean() + 1e-9
    assert np.all(scores.cnll_whole <= scores.nll + 1e-12)


def test_profiles_are_nll_at_the_nodes():
    logits, targets = make_pool(3, 40, 5)
    scores = score_ensembles(Predictions.of(logits, targets), np.full((1, 3), 1 / 3))
    nodes = scores.grid.inverse_temperatures
    truth = [reference.nll(logits, targets, 1 / node) for node in nodes]
    np.testing.assert_allclose(scores.profiles[0], truth, rtol=1e-9)
    assert calibrate(scores.grid, scores.profiles).nll[0] == scores.cnll_whole[0]
