import itertools

import numpy as np
import pytest

from ensize import InputError, Predictions, Sketch, fit, score
from ensize.draws import disjoint
from ensize.profiles import (
    TEMPERATURES,
    above_envelope,
    compare,
    doubling,
    profile,
    spaced,
)
from ensize.synthetic import World
from reference import cross_validated, make_pool, nll


def small(networks=5, **options):
    logits, targets = make_pool(networks, 60, 4, **options)
    return logits, targets, Predictions.of(logits, targets)


@pytest.mark.parametrize("apply", ["before", "after"])
def test_a_point_is_the_mean_nll_of_every_subset_at_its_temperature(apply):
    logits, targets, pool = small()
    found = profile(pool, temperatures=[3.0, 0.7], n=[2, 1, 4], apply=apply)
    assert found.n.tolist() == [1, 2, 4]
    assert found.ensembles.tolist() == [5, 10, 5]
    assert found.temperature.tolist() == [0.7, 3.0]
    assert (found.apply, found.networks, found.objects) == (apply, 5, 60)
    for row, temperature in zip(found.nll, found.temperature, strict=True):
        for value, n in zip(row, found.n, strict=True):
            subsets = [list(s) for s in itertools.combinations(range(5), n)]
            each = [nll(logits[s], targets, temperature, apply) for s in subsets]
            assert value == pytest.approx(np.mean(each), abs=1e-5)


def test_a_profile_of_a_world_is_its_exact_nll():
    """The two differ by what this pool's luck, shared along n, and the objects give."""
    world = World(objects=8000, luck=0.0)
    found = profile(world.predictions(24), temperatures=[0.5, 1, 3])
    for row, temperature in zip(found.nll, found.temperature, strict=True):
        exact = world.nll(found.n, temperature=temperature)
        assert row == pytest.approx(exact, rel=0.02)
    best, envelope = world.best([1, 4, 24])
    at = np.searchsorted(found.n, [1, 4, 24])
    assert found.best[at] == pytest.approx(best, rel=0.03)
    assert found.le_nll[at] == pytest.approx(envelope, rel=0.02)


def test_laws_are_of_points_that_three_ensembles_make():
    _, _, pool = small(networks=6)
    found = profile(pool, temperatures=[1.0, 2.0], method="paper")
    assert found.ensembles[-1] == 1
    for i, row in enumerate(found.nll):
        alone = fit(found.n[:-1], row[:-1], method="paper")
        assert found.laws[i].law.limit == pytest.approx(alone.limit, rel=1e-9)
        assert found.laws[i].points == 5


def test_laws_along_the_temperature_are_those_of_the_exact_nll():
    world = World(objects=4000)
    found = profile(world.predictions(32))
    assert found.temperature.tolist() == TEMPERATURES.tolist()
    assert np.all(np.diff(found.laws.gain) < 0)
    n = found.n[found.ensembles >= 3]
    for i in (0, 5, 25):
        exact = fit(n, world.nll(n, temperature=found.temperature[i]))
        assert found.laws.exponent[i] == pytest.approx(exact.exponent, abs=0.05)
        assert found.laws.gain[i] == pytest.approx(exact.gain, rel=0.05)
        assert found.laws.limit[i] == pytest.approx(exact.limit, rel=0.02)


def test_a_profile_leaves_the_odd_networks_out_as_a_curve_does():
    logits, targets, _ = small(networks=8)
    logits[3] = 5 * np.random.default_rng(0).normal(size=logits[3].shape)
    pool = Predictions.of(logits, targets)
    curve = score(pool, n=[1, 2])
    found = profile(pool, temperatures=[1.0], n=[1, 2])
    assert curve.odd == ("network 3",)
    assert found.networks == 7
    assert found.nll[0] == pytest.approx(curve.nll, rel=1e-6)
    assert profile(pool, n=[1], keep_odd=True).networks == 8


def test_records_hold_every_point_once():
    _, _, pool = small()
    found = profile(pool, temperatures=[1.0, 2.0], n=[1, 3])
    records = found.records()
    assert [(each["temperature"], each["n"]) for each in records] == [
        (1.0, 1),
        (1.0, 3),
        (2.0, 1),
        (2.0, 3),
    ]
    assert records[1]["nll"] == found.nll[0, 1]
    assert records[1]["ensembles"] == 10


def test_sketches_have_a_profile_before_averaging_only():
    _, _, pool = small()
    whole = profile(pool, temperatures=[0.6, 2.0])
    sketched = profile(Sketch.of(pool), temperatures=[0.6, 2.0])
    assert sketched.nll == pytest.approx(whole.nll, rel=1e-5)
    with pytest.raises(InputError, match="holds sketches"):
        profile(Sketch.of(pool), apply="after")


def test_a_comparison_scores_the_same_disjoint_ensembles_both_ways():
    logits, targets, pool = small(networks=6)
    both = compare(pool, n=[1, 2, 6])
    assert both.ensembles.tolist() == [6, 3, 1]
    firsts = [(each, targets) for each in (logits[g] for g in disjoint(6, 2))]
    from ensize.scores import halvings

    halves = halvings(60, seed=0)
    scores = {
        apply: np.array(
            [cross_validated(each, truth, halves, apply) for each, truth in firsts]
        )
        for apply in ("before", "after")
    }
    assert both.before[1] == pytest.approx(scores["before"].mean(), abs=1e-5)
    assert both.after[1] == pytest.approx(scores["after"].mean(), abs=1e-5)
    apart = scores["before"] - scores["after"]
    assert both.difference[1] == pytest.approx(apart.mean(), abs=1e-5)
    assert both.error[1] == pytest.approx(apart.std(ddof=1) / np.sqrt(3), abs=1e-5)
    # A single network is the same whichever way round.
    assert both.difference[0] == pytest.approx(0, abs=1e-6)
    assert both.difference_whole[0] == pytest.approx(0, abs=1e-6)
    assert np.isnan(both.error[2])
    assert np.isnan(both.error_whole[2])


def test_choosing_the_temperature_for_each_ensemble_on_all_objects_costs_nothing():
    curve = score(World(objects=1000).predictions(8))
    whole, crossed = above_envelope(curve)
    assert np.all(whole <= 1e-9)
    assert np.all(whole > -0.002 * curve.le_nll)
    assert np.all(crossed > whole)


def test_grids_of_n_end_at_the_number_of_networks():
    assert doubling(1) == spaced(1) == [1]
    assert doubling(64)[-1] == 64
    for networks in (3, 18, 96, 200):
        assert spaced(networks)[-1] <= networks
        assert set(doubling(networks)) <= set(spaced(networks))
        assert spaced(networks)[:8] == list(range(1, min(networks, 8) + 1))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"temperatures": []}, "temperatures are empty"),
        ({"temperatures": [1.0, 0.0]}, "temperature is 0.0"),
        ({"apply": "befor"}, "did you mean 'before'"),
        ({"n": [6]}, "n is 6"),
    ],
)
def test_mistakes_are_named(options, sentence):
    with pytest.raises(InputError, match=sentence):
        profile(small()[2], **options)


def test_points_without_each_network_are_those_of_the_others():
    """All subsets of six are scored, so that leaving out is exact but for n = 6."""
    _, _, pool = small(networks=6)
    found = profile(pool, temperatures=[0.7, 2.0], keep_odd=True)
    assert found.nll_without.shape == (2, 6, 6)
    assert np.isnan(found.nll_without[:, :, -1]).all()
    for i in range(6):
        others = pool.choose(np.delete(np.arange(6), i))
        alone = profile(others, temperatures=[0.7, 2.0], keep_odd=True)
        np.testing.assert_allclose(
            found.nll_without[:, i, 0], alone.nll[:, 0], rtol=1e-6
        )
        # Beyond one network the part that is explained is taken in closed form.
        shift = found.nll_without[:, i, 1:5] - found.nll[:, 1:5]
        exact = alone.nll[:, 1:5] - found.nll[:, 1:5]
        np.testing.assert_allclose(shift, exact, atol=0.3 * np.abs(exact).max())
    assert profile(pool, temperatures=[2.0], n=[1], apply="after").nll_without is None
