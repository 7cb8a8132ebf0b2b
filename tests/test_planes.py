import dataclasses

import numpy as np
import pytest

from ensize import InputError, Predictions, Sketch, Store, score
from ensize.laws import PowerLaw
from ensize.planes import budget_of, plane_of
from ensize.planes.budgets import between, candidates, measured
from ensize.planes.readings import DRAWS, Luck, choose
from ensize.planes.sizes import judge
from ensize.synthetic import Family, World

SIZES = [25_000 * 2**i for i in range(5)]
PAY = Family.splits_pay(objects=2000)
WINS = Family.single_wins(objects=2000)


def pools_of(family, networks, sizes=SIZES, seed=0):
    return [family.of(size).predictions(networks, seed=seed) for size in sizes]


@pytest.fixture(scope="module")
def plane():
    return plane_of(pools_of(PAY, 16))


@pytest.fixture(scope="module")
def losing():
    return plane_of(pools_of(WINS, 8))


def renamed(pool, **known):
    return dataclasses.replace(pool, pool=dataclasses.replace(pool.pool, **known))


def test_a_plane_holds_the_scores_of_each_pool(plane):
    assert plane.names == tuple(f"world-{size}" for size in SIZES)
    assert plane.sizes.tolist() == SIZES
    assert plane.networks.tolist() == [16] * 5
    curve = score(PAY.of(SIZES[1]).predictions(16))
    # Points between those scored are read on lines; n = 9 has the luck of 16 draws.
    np.testing.assert_allclose(plane.at(curve.n)[1], curve.cnll, atol=5e-4)
    np.testing.assert_allclose(
        plane.at(curve.n, score="accuracy")[1], curve.accuracy, atol=2e-3
    )


def test_beyond_its_networks_a_pool_tells_nothing(plane):
    assert np.isnan(plane.at([17, 100])).all()
    assert plane.at(16).shape == (5,)


def test_pools_in_any_order_make_the_same_plane(plane):
    other = plane_of(pools_of(PAY, 16)[::-1])
    assert other.names == plane.names
    np.testing.assert_array_equal(other.at([1, 5]), plane.at([1, 5]))


def test_luck_is_as_wide_as_the_curves_error_says():
    curve = score(World(luck=0.3).predictions(9))
    luck = Luck.of(curve, "cnll", 0)
    spread = luck.draws(np.array([1.0, 3.0, 8.0])).std(axis=0)
    # Student's t with 8 degrees of freedom has the variance 8/6.
    truth = np.sqrt(8 / 6) * curve.cnll_se[[0, 2, 7]]
    np.testing.assert_allclose(spread, truth, rtol=0.05)
    # All networks together cannot be left out: as uncertain as all but one.
    assert luck.draws(np.array([9.0])).std() == pytest.approx(spread[2], rel=1e-6)


def test_intervals_of_readings_cover_nine_times_of_ten():
    """Over 150 pools of six; 0.9 has a standard error of 0.025."""
    world = World(objects=300, luck=0.25)
    curves = [
        score(world.predictions(range(6 * i, 6 * i + 6)), n=[1, 2, 4, 5])
        for i in range(150)
    ]
    for j, n in enumerate((1, 2, 4)):
        truth = np.mean([curve.cnll[j] for curve in curves])
        inside = 0
        for i, curve in enumerate(curves):
            low, high = Luck.of(curve, "cnll", i).reading(n).interval
            inside += low <= truth <= high
        assert 0.83 <= inside / 150 <= 0.97


@pytest.mark.parametrize("n", [1, 4])
def test_along_the_size_the_law_of_the_worlds_is_found(n):
    """The exponent of the exact LE-NLL at the same sizes, within the interval."""
    sizes = [12_500 * 4**i for i in range(6)]
    cut = plane_of(pools_of(PAY, 12, sizes)).along_size(n)
    truth = [float(PAY.of(size).best(n)[1]) for size in sizes]
    exact = judge(
        np.array(sizes, float),
        np.array(truth),
        np.tile(truth, (10, 1)),
        "cnll",
        0,
        "size",
    )[0]
    assert cut.verdict.code == "holds"
    exponent, low, high = cut.exponent
    assert low < exact.exponent < high
    assert low < exponent < high
    assert high - low < 0.5
    # Six intervals of 90 %: not more than two miss, but for one try in 60.
    inside = (cut.low < truth) & (truth < cut.high)
    assert inside.sum() >= 4


def test_a_law_along_the_size_is_recovered_from_its_points():
    m = 10_000.0 * 2 ** np.arange(6)
    value = PowerLaw(0.4, 40.0, -0.55)(m)
    draws = value * (1 + 1e-4 * np.random.default_rng(0).standard_normal((200, 6)))
    law, exponent, verdict = judge(m, value, draws, "cnll", 0.0, "size")
    assert verdict.code == "holds"
    assert (law.limit, law.exponent) == pytest.approx((0.4, -0.55), rel=1e-4)
    assert exponent[1] < -0.55 < exponent[2]
    # Of accuracy the errors follow the law.
    law = judge(m, 1 - value / 4, 1 - draws / 4, "accuracy", 0.0, "size")[0]
    assert (law.limit, law.exponent) == pytest.approx((0.1, -0.55), rel=1e-4)


def test_a_curve_that_turns_gets_no_law():
    m = 10_000.0 * 2 ** np.arange(6)
    value = np.array([0.9, 0.7, 0.6, 0.55, 0.58, 0.65])
    draws = value + 0.002 * np.random.default_rng(0).standard_normal((200, 6))
    law, _, verdict = judge(m, value, draws, "cnll", 1.0, "size")
    assert law is None
    assert verdict.code == "does not hold"
    assert "turns" in verdict.sentence
    assert "80,000" in verdict.sentence


def test_a_bent_curve_or_a_flat_one_gets_no_law():
    m = 10_000.0 * 2 ** np.arange(6)
    noise = np.random.default_rng(0).standard_normal((200, 6))
    stairs = np.array([0.9, 0.9, 0.9, 0.6, 0.6, 0.5])
    bent = judge(m, stairs, stairs + 1e-3 * noise, "cnll", 0.0, "size")[2]
    assert bent.code == "does not hold"
    flat = 0.5 - 0.001 * np.arange(6)
    lost = judge(m, flat, flat + 0.01 * noise, "cnll", 0.0, "size")[2]
    assert lost.code == "cannot be said"
    few = judge(m[:3], stairs[:3], noise[:, :3], "cnll", 0.0, "size")[2]
    assert few.code == "cannot be said"


def test_the_best_of_each_budget_is_the_lower_envelope(plane):
    cut = plane.along_budget()
    for budget, value, n, size in zip(
        cut.budget, cut.value, cut.n, cut.size, strict=True
    ):
        afforded = [
            plane.at(min(16, int(budget * (1 + 1e-9)) // each))[k]
            for k, each in enumerate(SIZES)
            if each <= budget * (1 + 1e-9)
        ]
        assert n * size <= budget * (1 + 1e-9)
        # What luck gives to the best of several is taken off.
        assert 0 <= value - min(afforded) < 0.006
    assert cut.verdict.code == "holds"
    assert cut.budget[-1] == pytest.approx(16 * SIZES[0], rel=1e-9)


def test_splits_pay_where_they_do(plane):
    found = plane.advantage(["100k", "200k", "400k"])
    assert (found.advantage > 0).all()
    assert (found.probability > 0.95).all()
    for budget, n, advantage, low, high in zip(
        *(found.budget, found.n, found.advantage, found.low, found.high), strict=True
    ):
        exact = PAY.splits(int(budget))
        truth = exact.value[0] - exact.value.min()
        assert low < truth < high
        assert exact.best / 2 <= n <= exact.best * 2
        assert advantage == pytest.approx(truth, abs=0.03)
    assert [record["budget"] for record in found.records()] == [1e5, 2e5, 4e5]


def test_splits_do_not_pay_where_a_single_network_wins(losing):
    found = losing.advantage()
    assert (found.advantage < 0).all()
    assert (found.probability < 0.3).all()
    for budget, low, high in zip(found.budget, found.low, found.high, strict=True):
        exact = WINS.splits(int(budget)).value
        assert low < exact[0] - exact[1:].min() < high
    accuracy = losing.advantage(score="accuracy")
    assert (accuracy.probability < 0.5).all()


def test_between_two_sizes_the_plane_is_read_on_a_line_in_the_root(plane):
    """A third of the way in the logarithm; truth from the exact world."""
    for n in (1, 4):
        reading = between(
            plane, n, 150_000.0, "cnll", "parameters", measured(plane, "cnll")
        )
        low, high = reading.interval
        assert reading.source == "interpolated"
        assert low < float(PAY.of(150_000).best(n)[1]) < high


def test_every_split_of_a_budget_is_listed_once(plane):
    found = candidates(plane, 400_000, "cnll", "parameters", measured(plane, "cnll"))
    assert [(each.pool, each.n) for each in found] == [
        ("world-400000", 1),
        ("world-200000", 2),
        ("world-100000", 4),
        ("world-50000", 8),
        ("world-25000", 16),
    ]
    between_two = candidates(
        plane, 300_000, "cnll", "parameters", measured(plane, "cnll")
    )
    sizes = {each.n: each.size for each in between_two if each.pool is None}
    assert sizes == {1: 300_000, 2: 150_000, 4: 75_000, 8: 37_500}
    assert all(each.total <= 300_000 for each in between_two)


def test_what_the_chosen_one_owes_to_luck_is_taken_off():
    """Five values that are equal in truth: the least of the measured ones is too low.

    Over 400 tries the bias of what is left has a standard error of 0.03.
    """
    random = np.random.default_rng(0)
    plain, corrected = [], []
    for _ in range(400):
        values = random.standard_normal(5)
        best, off = choose(values, values + random.standard_normal((500, 5)), 1)
        plain.append(values[best])
        corrected.append(values[best] - off)
    assert np.mean(plain) < -1.0
    assert abs(np.mean(corrected)) < 0.65 * abs(np.mean(plain))
    # Where one is clearly best, luck has no part in it.
    clear = np.array([0.0, 10.0, 20.0])
    assert choose(clear, clear + random.standard_normal((500, 3)), 1) == (
        0,
        pytest.approx(0.0, abs=0.15),
    )


def test_other_costs_are_counted_where_they_are_known(tmp_path):
    store = Store(tmp_path)
    for k, size in enumerate((20_000, 40_000)):
        pool = PAY.of(size).predictions(4)
        for seed, logits in enumerate(pool.rows):
            store.add(
                *(f"w{k}", seed, logits, pool.targets),
                size=size,
                family="vgg",
                multiply_adds=10 ** (k + 6),
                extra={"prediction_seconds": str(2.0 + k)},
            )
    (tmp_path / "study.toml").write_text('name = "small"\n', encoding="utf-8")
    plane = plane_of(tmp_path)
    assert plane.costs("multiply-adds").tolist() == [1e6, 1e7]
    assert plane.costs("seconds").tolist() == [2.0, 3.0]
    assert plane.recipe == "study small"
    assert plane.advantage(["10M"], cost="multiply-adds").n.tolist() == [4]
    with pytest.raises(InputError, match=r"family of .* is 'wrn'"):
        plane_of(tmp_path, family="wrn")


def test_costs_that_nobody_recorded_are_named(plane):
    for cost in ("multiply-adds", "seconds"):
        with pytest.raises(InputError, match=f"world-25000.*{cost}"):
            plane.costs(cost)


def test_sketches_make_a_plane_without_accuracy():
    pools = [Sketch.of(pool) for pool in pools_of(PAY, 4, SIZES[:2])]
    plane = plane_of(pools)
    assert np.isfinite(plane.at([1, 4])).all()
    assert np.isnan(plane.at([1, 4], score="accuracy")).all()
    assert sum("sketches" in each for each in plane.warnings) == 2


def test_separate_predictions_choose_the_temperatures():
    pools = pools_of(PAY, 4, SIZES[:2])
    other = [
        World(**{**dataclasses.asdict(PAY.of(size)), "seed": 5}).predictions(4)
        for size in SIZES[:2]
    ]
    plane = plane_of(pools, calibrate_on=other)
    truth = score(pools[0], n=[1, 4], calibrate_on=other[0]).cnll
    np.testing.assert_allclose(plane.at([1, 4])[0], truth)
    assert plane.options["calibrated"] == "separately"


def test_networks_of_another_recipe_choose_no_temperatures():
    pools = [renamed(each, recipe="ours") for each in pools_of(PAY, 4, SIZES[:2])]
    others = [renamed(each, recipe="theirs") for each in pools]
    with pytest.raises(InputError, match="'world-25000' to calibrate on have another"):
        plane_of(pools, calibrate_on=others)


def test_networks_that_did_not_train_are_left_out_of_a_plane():
    pool = PAY.of(SIZES[0]).predictions(5)
    rows = [np.asarray(each) for each in pool.rows]
    rows[3] = 0 * rows[3]
    bad = renamed(Predictions.of(rows, pool.targets), name="bad", size=SIZES[0])
    plane = plane_of([bad, PAY.of(SIZES[1]).predictions(5)])
    assert plane.networks.tolist() == [4, 5]
    assert any("odd ones out" in each for each in plane.warnings)
    assert plane_of(
        [bad, PAY.of(SIZES[1]).predictions(5)], keep_odd=True
    ).networks.tolist() == [5, 5]


def test_pools_of_two_networks_are_left_out_and_named():
    pools = [
        PAY.of(size).predictions(n) for size, n in zip(SIZES, (5, 5, 2), strict=False)
    ]
    plane = plane_of(pools)
    assert len(plane) == 2
    assert any(
        "world-100000" in each and "2 networks" in each for each in plane.warnings
    )


def test_budgets_are_read_as_people_write_them():
    assert budget_of("15.3M") == 15_300_000
    assert budget_of("1,500k") == 1_500_000
    assert budget_of("2e6") == budget_of(2_000_000) == 2e6
    assert budget_of("1.5B") == budget_of("1.5 G") == 1.5e9
    for wrong in ("15.3Q", "", "M", "-3", "0", "nan", "1.2.3M"):
        with pytest.raises(InputError, match=r"15\.3M"):
            budget_of(wrong)
    with pytest.raises(InputError, match="budget is -1"):
        budget_of(-1)


def one_size(tmp_path):
    return [PAY.of(SIZES[0]).predictions(4)]


def other_targets(tmp_path):
    other = World(seed=7, objects=2000, size=50_000).predictions(4)
    return [PAY.of(SIZES[0]).predictions(4), other]


def without_size(tmp_path):
    return [World().predictions(4), World().predictions(4)]


def same_size(tmp_path):
    pool = PAY.of(SIZES[0]).predictions(4)
    return [pool, renamed(pool, name="twin")]


def no_store(tmp_path):
    return tmp_path / "nothing"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (one_size, "has 1 size with at least 3 networks, but a plane needs two"),
        (other_targets, "have other targets"),
        (without_size, "does not say how many parameters"),
        (same_size, "'world-25000' and 'twin' .* the same size"),
        (no_store, "does not exist"),
        (lambda _: 3, "was given int"),
    ],
)
def test_what_is_no_plane_is_refused_in_a_sentence(make, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        plane_of(make(tmp_path))


def test_a_budget_below_the_smallest_network_is_refused(plane):
    with pytest.raises(InputError, match="world-25000"):
        plane.advantage(["10k"])
    with pytest.raises(InputError, match="25,000"):
        plane.along_budget(["10k"])


def test_a_cut_beyond_every_pool_is_refused(plane):
    with pytest.raises(InputError, match="n is 17"):
        plane.along_size(17)
    with pytest.raises(InputError, match="score is 'nll'"):
        plane.along_size(1, score="nll")
    assert DRAWS >= 1000
