import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ensize
from ensize import InputError, Predictions, Sketch, score
from ensize.curves import COLUMNS
from ensize.draws import disjoint
from ensize.scores import halvings
from ensize.synthetic import World
from reference import cross_validated, make_pool, nll


def small(networks=5, **options):
    logits, targets = make_pool(networks, 60, 4, **options)
    return logits, targets, Predictions.of(logits, targets)


def test_a_point_is_the_mean_over_every_subset():
    logits, targets, pool = small()
    curve = score(pool)
    firsts = halvings(60, seed=0)
    assert curve.n.tolist() == [1, 2, 3, 4, 5]
    assert curve.ensembles.tolist() == [5, 10, 10, 5, 1]
    for n in (1, 3, 5):
        subsets = [list(s) for s in itertools.combinations(range(5), n)]
        plain = np.mean([nll(logits[s], targets) for s in subsets])
        calibrated = [cross_validated(logits[s], targets, firsts) for s in subsets]
        assert curve.nll[n - 1] == pytest.approx(plain, abs=1e-6)
        assert curve.cnll[n - 1] == pytest.approx(np.mean(calibrated), abs=1e-5)


def test_the_error_is_the_delete_one_jackknife_over_networks():
    _, _, pool = small()
    curve = score(pool)
    for n in (1, 2, 4):
        without = []
        for i in range(5):
            kept = pool.choose(j for j in range(5) if j != i)
            without.append(score(kept, n=[n], keep_odd=True).cnll[0])
        truth = np.sqrt(4 / 5 * np.sum((without - np.mean(without)) ** 2))
        assert curve.cnll_se[n - 1] == pytest.approx(truth, rel=1e-4)
    assert np.isnan(curve.cnll_se[4])


def test_errors_of_drawn_subsets_count_networks():
    """Over 150 pools the mean squared error estimate is the variance of the points.

    Both are uncertain by some 12 %; errors that counted the drawn subsets would be
    two to four times as large in the middle, naive ones far too small. And the mean
    of all pools lies within two errors of a pool's own point 19 times of 20.
    """
    world = World(objects=400, luck=0.3)
    sizes = [1, 2, 4, 8, 12, 18, 23]
    curves = [
        score(world.predictions(range(24 * i, 24 * i + 24)), n=sizes, seed=i)
        for i in range(150)
    ]
    truth = np.var([c.cnll for c in curves], axis=0, ddof=1)
    estimated = np.mean([c.cnll_se**2 for c in curves], axis=0)
    assert np.all(estimated / truth > 0.7)
    assert np.all(estimated / truth < 1.5)
    cnll = np.array([c.cnll for c in curves])
    errors = np.array([c.cnll_se for c in curves])
    covered = (np.abs(cnll - cnll.mean(axis=0)) < 2 * errors).mean(axis=0)
    assert np.all(covered > 0.88)
    assert np.all(covered < 0.995)


def test_disjoint_groups_have_independent_errors():
    _, _, pool = small(networks=8)
    curve = score(pool, ensembles="disjoint", n=[2, 4, 5])
    each = [score(pool.choose(g), n=[2]).cnll[0] for g in disjoint(8, 2)]
    assert curve.ensembles.tolist() == [4, 2, 1]
    assert curve.cnll[0] == pytest.approx(np.mean(each), rel=1e-6)
    assert curve.cnll_se[0] == pytest.approx(np.std(each, ddof=1) / 2, rel=1e-4)
    assert np.isnan(curve.cnll_se[2])


def test_the_curve_of_a_world_is_its_law():
    """Three standard errors, and what cross-validation adds, from the exact LE-NLL."""
    world = World(objects=5000)
    curve = score(world.predictions(32), n=[1, 2, 4, 8, 16, 31])
    _, truth = world.best(curve.n)
    assert np.all(np.abs(curve.le_nll - truth) < 3 * curve.cnll_se + 1e-3)
    assert np.all(np.abs(curve.cnll / curve.le_nll - 1) < 0.005)


def test_a_network_that_did_not_train_is_left_out_and_named():
    logits, targets, _ = small(networks=6)
    logits[2] = 0.01 * np.random.default_rng(0).standard_normal(logits[2].shape)
    curve = score(Predictions.of(logits, targets))
    kept = np.delete(logits, 2, axis=0)
    np.testing.assert_allclose(curve.cnll, score(Predictions.of(kept, targets)).cnll)
    assert curve.odd == ("network 2",)
    assert "1 of 6 networks (17%)" in curve.warnings[0]
    assert "network 2" in curve.warnings[0]
    all_six = score(Predictions.of(logits, targets), keep_odd=True)
    assert all_six.networks == 6
    assert all_six.cnll[0] > curve.cnll[0] + 0.01


def test_odd_networks_are_left_out_of_separate_predictions_too():
    logits, targets, _ = small(networks=6)
    logits[2] = 0
    other, truth, _ = small(networks=6, seed=9)
    curve = score(
        Predictions.of(logits, targets), calibrate_on=Predictions.of(other, truth)
    )
    kept = score(
        Predictions.of(np.delete(logits, 2, axis=0), targets),
        calibrate_on=Predictions.of(np.delete(other, 2, axis=0), truth),
    )
    np.testing.assert_allclose(curve.cnll, kept.cnll)
    assert curve.options["calibrated"] == "separately"


def test_a_network_that_stands_in_the_pool_twice_is_named():
    logits, targets, _ = small()
    clones = Predictions.of([*logits, logits[1]], targets)
    assert any(
        "network 5 says the same as network 1" in w for w in score(clones).warnings
    )
    twice = Predictions.of(list(logits), targets, labels=["a", "b", "c", "d", "a"])
    assert not score(twice, n=[1]).warnings  # a name is no network
    twice = Predictions.of([*logits, logits[0]], targets, labels=[*"abcde", "a"])
    assert any("a says the same as a" in warning for warning in score(twice).warnings)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.permutations(range(4)))
def test_the_order_of_networks_changes_nothing_where_all_subsets_are_scored(
    seed, order
):
    logits, targets, pool = small(networks=4, seed=seed)
    one, other = score(pool), score(Predictions.of(logits[order], targets))
    for name in ("nll", "cnll_whole", "le_nll", "accuracy", "brier", "jensen_gap"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-6
        )
    assert len(one.odd) == len(other.odd)


def test_a_pool_at_chance_is_told_to_check_its_targets():
    noise = 0.01 * np.random.default_rng(0).standard_normal((3, 4000, 4))
    curve = score(Predictions.of(noise, np.arange(4000) % 4))
    assert curve.odd == ()
    assert any("check that the targets belong to these" in w for w in curve.warnings)


def test_sketches_leave_accuracy_unknown_and_say_so():
    _, _, pool = small()
    curve = score(Sketch.of(pool))
    assert np.isnan(curve.accuracy).all()
    assert np.isnan(curve.brier).all()
    assert any("accuracy and Brier score are unknown" in w for w in curve.warnings)
    np.testing.assert_allclose(curve.cnll, score(pool).cnll, atol=1e-5)


def test_an_edge_that_stays_is_reported():
    perfect = 4 * np.eye(3)
    curve = score(Predictions.of([perfect, 2 * perfect], [0, 1, 2]))
    assert any("at the edge of what was searched" in w for w in curve.warnings)


def test_same_seed_same_curve_other_seed_other_halves():
    _, _, pool = small()
    assert np.array_equal(score(pool, seed=1).cnll, score(pool, seed=1).cnll)
    assert not np.array_equal(score(pool, seed=1).cnll, score(pool, seed=2).cnll)
    np.testing.assert_array_equal(
        score(pool, seed=1).cnll_whole, score(pool, seed=2).cnll_whole
    )


def test_the_papers_rule_of_three_runs_is_a_mask():
    _, _, pool = small(networks=8)
    curve = score(pool, ensembles="disjoint")
    assert curve.n[curve.averaged()].tolist() == [1, 2]
    assert curve.n[curve.averaged(1)].tolist() == list(range(1, 9))


def test_records_and_table_hold_the_points():
    _, _, pool = small()
    curve = score(pool, n=[1, 5])
    assert [tuple(record) for record in curve.records()] == [COLUMNS] * 2
    assert curve.records()[1]["cnll"] == curve.cnll[1]
    lines = curve.table().splitlines()
    assert lines[0].split()[0] == "n"
    assert len(lines) == 3
    assert "–" in lines[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": [6]}, "n is 6, but the pool has 5 networks"),
        ({"n": [0]}, "n is 0; give a whole number from 1 on"),
        ({"n": [1.5]}, "n is 1.5"),
        ({"n": []}, "n is empty"),
        ({"ensembles": "al"}, "did you mean 'all'"),
        ({"apply": "during"}, "apply is 'during'"),
        ({"temperature": 0}, "temperature is 0; give a number above 0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": 1e-300}, "temperature is 1e-300, where .* give one from"),
    ],
)
def test_mistakes_get_a_sentence(options, message):
    _, _, pool = small()
    with pytest.raises(InputError, match=message):
        score(pool, **options)


def test_other_networks_to_calibrate_on_are_refused():
    pool, other = (Predictions.of(*make_pool(2, 20, c)) for c in (3, 4))
    with pytest.raises(InputError, match="calibrate on have 4 classes, but the pool"):
        score(pool, calibrate_on=other)
    _, _, pool = small()
    with pytest.raises(InputError, match="are of 3 networks, but the pool has 5"):
        score(pool, calibrate_on=small(networks=3)[2])


def test_arrays_are_asked_to_come_through_load():
    with pytest.raises(InputError, match=r"give it what ensize\.load"):
        score(np.zeros((2, 3, 4)))


def test_the_whole_chain_recovers_a_known_limit():
    """From predictions to a law: the limit of a world, from six networks."""
    world = World(objects=5000)
    pool = ensize.load(
        [world.predictions([i]).rows[0] for i in range(6)],
        targets=world.predictions(1).targets,
    )
    curve = ensize.score(pool)
    law = ensize.fit(curve.n, curve.cnll)
    _, limit = world.best(np.inf)
    assert law.limit == pytest.approx(limit, abs=0.01)
    assert law.exponent == pytest.approx(-0.9, abs=0.1)
