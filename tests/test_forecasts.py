import json
import math

import numpy as np
import pytest
from scipy import stats

from ensize import InputError, Predictions, Sketch, Status, Store, fit, forecast, score
from ensize.draws import disjoint
from ensize.forecasts import BackTests, back_test
from ensize.forecasts.refits import paper_refits, robust_refits
from ensize.synthetic import World, noisy_curve
from test_cli import mistake, run

WORLD = World(objects=1000)
SIX = WORLD.predictions(6)
FAR = [8.0, 64.0, math.inf]


@pytest.fixture(scope="module")
def ahead():
    return forecast(SIX, to=FAR)


@pytest.fixture(scope="module")
def tested():
    """Worlds with much luck, beside which the noise of cross-validation is nothing."""
    found = []
    for seed, noise in enumerate((1.5, 0.7)):
        world = World(objects=300, noise=noise, luck=0.3, seed=seed + 1)
        pool = world.predictions(240)
        found.append(back_test(pool, to=FAR, truth=world.best(FAR)[1]))
    pools = tuple(each.pools[0] for each in found)
    return BackTests(pools, found[0].options)


def clones(count):
    return Predictions.of(np.stack([SIX.logits(0, 0, 1000)] * count), SIX.targets)


# --- what a forecast says ---------------------------------------------------------


def test_a_forecast_reads_its_law_between_its_bounds(ahead):
    np.testing.assert_array_equal(ahead.cnll, ahead.law.law(FAR))
    np.testing.assert_array_equal(ahead.at(FAR), ahead.cnll)
    assert ahead.at(8) == ahead.cnll[0]
    assert (ahead.low < ahead.cnll).all()
    assert (ahead.cnll < ahead.high).all()
    assert tuple(ahead.limit) == (ahead.cnll[-1], ahead.low[-1], ahead.high[-1])
    assert ahead.interval(8) == (ahead.low[0], ahead.high[0])


def test_a_surer_interval_is_wider(ahead):
    low, high = ahead.interval(FAR, level=0.99)
    assert (low < ahead.low).all()
    assert (high > ahead.high).all()


def test_at_the_pools_own_size_a_forecast_is_near_the_measurement(ahead):
    assert ahead.at(6) == pytest.approx(ahead.curve.cnll[5], rel=1e-3)


def test_draws_scatter_as_wide_as_the_intervals(ahead):
    drawn = ahead.sample([8, 64], 40_000, 0)
    assert drawn.shape == (40_000, 2)
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(
        (high - low) / 2, (ahead.high - ahead.low)[:2] / 2, rtol=0.03
    )
    # They move together: the difference is as sure as `difference` says.
    fall = np.quantile(drawn[:, 0] - drawn[:, 1], [0.05, 0.95])
    np.testing.assert_allclose(fall, ahead.difference(8, 64)[1:], rtol=0.03)


def test_a_difference_is_surer_than_either_end(ahead):
    fall = ahead.difference(8, 64)
    assert fall.value == pytest.approx(ahead.at(8) - ahead.at(64))
    assert fall.high - fall.low < (ahead.high - ahead.low)[:2].min() / 2
    assert ahead.difference(8, 8) == (0, 0, 0)


def test_the_equivalent_of_a_score_is_where_the_law_has_it(ahead):
    assert ahead.equivalent(ahead.at(11)) == pytest.approx(11)
    assert ahead.equivalent(ahead.limit.value) == math.inf
    assert ahead.equivalent(2.0) < 1


def test_the_table_and_the_records_show_all_that_was_asked(ahead):
    assert [record["n"] for record in ahead.records()] == [8, 64, math.inf]
    lines = ahead.table().splitlines()
    assert len(lines) == 4
    assert lines[-1].split()[0] == "∞"


def test_the_same_seed_makes_the_same_forecast(ahead):
    again = forecast(SIX, to=FAR)
    np.testing.assert_array_equal(again.high, ahead.high)


# --- what it rests on -------------------------------------------------------------


def test_a_curve_is_forecast_like_its_pool(ahead):
    again = forecast(ahead.curve, to=ahead.n)
    np.testing.assert_array_equal(again.cnll, ahead.cnll)
    np.testing.assert_array_equal(again.low, ahead.low)
    assert again.options == ahead.options
    for options in ({"method": "paper"}, {"objects": True}):
        with pytest.raises(InputError, match="for all else give it the pool"):
            forecast(ahead.curve, **options)


def test_the_jackknife_is_that_of_pools_without_each_network(ahead):
    # Each pool of five is scored by itself: slow, and without closed forms.
    curves = np.full((6, 6), np.nan)
    for i in range(6):
        five = SIX.choose([k for k in range(6) if k != i])
        curves[i, :5] = score(five, keep_odd=True).cnll
    refits = robust_refits(ahead.curve.n, ahead.curve.cnll, curves)
    half = refits.half_width(refits.luck(np.array(FAR)), 0.9)
    np.testing.assert_allclose(half, ahead.high - ahead.cnll, rtol=2e-3)


def test_half_widths_follow_from_the_jackknife_by_student(ahead):
    refits = ahead.refits
    laws = refits.laws(np.array([64.0]))[:, 0]
    jackknife = 5 * np.var(laws[1:7])
    doubt = laws[7] - laws[0]
    t, z = stats.t.ppf(0.95, 5), stats.norm.ppf(0.95)
    half = np.sqrt(t**2 * jackknife + z**2 * doubt**2)
    np.testing.assert_allclose(ahead.high[1] - ahead.cnll[1], half)


def test_paper_fits_its_objective_to_disjoint_groups():
    found = forecast(SIX, to=FAR, method="paper", seed=3)
    curve = score(SIX, n=[1, 2, 3, 4], ensembles="disjoint", seed=3)
    law = fit(curve.n, curve.cnll, method="paper")
    assert found.law.law == law.law
    # Without a network the others close ranks, and are cut anew.
    order = disjoint(6, 1, 3)[:, 0]
    without = []
    for i in range(6):
        rest = [k for k in order if k != i]
        cut = [[rest[j : j + n] for j in range(0, 6 - n, n)] for n in (1, 2, 3, 4)]
        means = []
        for n, groups in enumerate(cut, 1):
            whole = [group for group in groups if len(group) == n]
            means.append(
                np.mean(
                    [
                        score(SIX.choose(g), n=[n], keep_odd=True, seed=3).cnll
                        for g in whole
                    ]
                )
            )
        without.append(means)
    refits = paper_refits(curve.n, curve.cnll, np.array(without))
    half = refits.half_width(refits.luck(np.array(FAR)), 0.9)
    np.testing.assert_allclose(half, found.high - found.cnll, rtol=1e-3)


def test_the_exponent_is_shrunk_as_far_as_it_is_uncertain():
    n = np.arange(1, 7)
    exact = noisy_curve(n, (0.3, 0.2, -1.2))
    sure = robust_refits(n, exact, np.tile(exact, (6, 1)))
    assert sure.law.exponent == pytest.approx(-1.2, abs=1e-6)
    steps = 1 + 0.3 * np.random.default_rng(0).standard_normal((6, 6))
    unsure = robust_refits(n, exact, exact[-1] + (exact - exact[-1]) * steps)
    assert -1.0 < unsure.law.exponent < -0.85
    assert unsure.law.status is Status.PRIOR


@pytest.mark.parametrize("apply", ["before", "after"])
def test_both_ways_of_applying_the_temperature(apply):
    small = World(objects=400).predictions(6)
    found = forecast(small, apply=apply)
    np.testing.assert_array_equal(found.curve.cnll, score(small, apply=apply).cnll)


def test_sketches_forecast_like_logits(ahead):
    found = forecast(Sketch.of(SIX), to=FAR)
    np.testing.assert_allclose(found.cnll, ahead.cnll, rtol=1e-5)


def test_the_temperature_may_come_from_other_objects():
    other = World(objects=800, seed=5).predictions(6)
    found = forecast(SIX, calibrate_on=other)
    np.testing.assert_array_equal(found.curve.cnll, score(SIX, calibrate_on=other).cnll)
    assert found.options["calibrated"] == "separately"


def test_networks_that_did_not_train_are_left_out_and_named(ahead):
    logits = [SIX.logits(i, 0, 1000) for i in range(6)]
    logits.insert(2, np.random.default_rng(0).standard_normal(logits[0].shape))
    pool = Predictions.of(logits, SIX.targets)
    found = forecast(pool, to=FAR)
    assert found.odd == ("network 2",)
    assert "network 2" in found.warnings[0]
    np.testing.assert_allclose(found.cnll, ahead.cnll, rtol=1e-4)
    assert forecast(pool, to=FAR, keep_odd=True).odd == ()


def test_a_large_pool_is_read_at_some_points_only():
    found = forecast(World(objects=200).predictions(40))
    assert found.curve.n.tolist() == [*range(1, 13), 14, 17, 20, 24, 29, 34, 40]


def test_a_test_set_too_small_to_calibrate_on_is_called_so():
    # Of these eight objects one half is all right, so that it chooses τ = 0.
    pool = World(objects=8, margin=5.0, seed=1).predictions(4)
    assert any("too little to choose" in each for each in forecast(pool).warnings)
    other = World(objects=500, margin=5.0).predictions(4)
    found = forecast(pool, calibrate_on=other)
    assert not any("too little to choose" in each for each in found.warnings)


# --- the luck of the test set -----------------------------------------------------


def test_objects_add_the_luck_of_the_test_set():
    # Without luck of networks, all that matters is which objects were asked.
    world = World(objects=2000, luck=0.0)
    pool = world.predictions(6)
    narrow, wide = (forecast(pool, to=[64], objects=x) for x in (False, True))
    z = stats.norm.ppf(0.95)
    added = math.sqrt(
        (wide.high[0] - wide.cnll[0]) ** 2 - (narrow.high[0] - narrow.cnll[0]) ** 2
    )
    p = [
        np.asarray(pool.logits(i, 0, 2000), float) / world.best(6)[0] for i in range(6)
    ]
    p = [np.exp(x - np.logaddexp.reduce(x, axis=1)[:, None]) for x in p]
    losses = -np.log(np.mean(p, axis=0)[np.arange(2000), pool.targets])
    # 100 resamples tell a standard deviation to 7 %, 100 parts to 7 % as well.
    assert added / z == pytest.approx(losses.std() / math.sqrt(2000), rel=0.2)
    # All ensembles see the same objects, so that differences stay sure.
    fall = wide.difference(8, 64)
    assert (fall.high - fall.low) / 2 < added / 3


# --- advice -----------------------------------------------------------------------


def test_advice_says_what_the_next_network_gains_and_how_many_are_enough(ahead):
    said = " ".join(ahead.advice)
    step = ahead.difference(6, 7)
    assert f"Network number 7 lowers CNLL by {step.value:.5f}" in said
    near = ahead.limit.value * 1.01
    enough = math.ceil(ahead.equivalent(near))
    assert f"{enough} networks come within 1% of the limit" in said
    assert ahead.at(enough) <= near < ahead.at(enough - 1)


def test_advice_takes_nats_too():
    said = " ".join(forecast(SIX, within=0.1).advice)
    assert "come within 0.1 nats of the limit" in said


def test_identical_networks_gain_nothing():
    for method in ("robust", "paper"):
        found = forecast(clones(6), to=[8], method=method)
        assert found.law.gain == 0
        assert found.difference(6, 7).value == 0
        assert "another one gains nothing" in found.advice[0]
        assert found.warnings


def test_three_networks_say_that_their_exponent_is_the_usual_one():
    found = forecast(World().predictions(3))
    assert found.law.status is Status.PRIOR
    assert found.law.exponent == pytest.approx(-0.85)
    assert any("that of most recipes" in sentence for sentence in found.advice)


def test_thin_evidence_is_called_so():
    found = forecast(
        World(objects=200, luck=0.6, seed=3).predictions(4), method="paper"
    )
    fall = found.difference(4, math.inf)
    assert fall.low <= 0
    assert any("too thin" in sentence for sentence in found.advice)


# --- do they keep what they promise? ----------------------------------------------


@pytest.mark.parametrize("noise", [0.7, 1.2])
def test_with_exact_points_the_limit_is_the_worlds(noise):
    n = np.array([1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64])
    *cnll, truth = World(noise=noise).best([*n, math.inf])[1]
    for most, error in ((6, 3e-3), (len(n), 2e-3)):
        # Exact CNLL is nearly a law, and the more so the larger n.
        exact = np.array(cnll[:most])
        refits = robust_refits(n[:most], exact, np.tile(exact, (3, 1)))
        assert refits.law.limit == pytest.approx(truth, rel=error)


def test_a_larger_pool_knows_the_limit_better():
    world = World(objects=500)
    truth = world.best(math.inf)[1]
    halves = []
    for count in (6, 24, 96):
        limit = forecast(world.predictions(count), keep_odd=True).limit
        assert limit.low < truth < limit.high
        halves.append(limit.high - limit.value)
    # With four times the networks half the error, and Student's t besides.
    assert halves[0] > 1.9 * halves[1] > 1.9 * 1.5 * halves[2]


def test_intervals_keep_their_promise_in_worlds(tested):
    # 80 sets: a coverage of 0.9 is seen within 0.07 in nineteen of twenty cases.
    assert tested.sets == 80
    for each in tested.pools:
        np.testing.assert_allclose(each.coverage("robust").value, 0.9, atol=0.1)
    assert tested.coverage("robust").value == pytest.approx(0.9, abs=0.07)
    assert tested.width("robust").value < 3


def test_robust_errs_less_than_half_as_much_as_paper_in_worlds(tested):
    assert tested.ratio("robust", "paper").value < 0.5
    assert tested.ratio("robust", "line").value < 1


def test_robust_has_next_to_no_bias_in_worlds(tested):
    for each in tested.pools:
        value, se = each.bias("robust")
        assert (np.abs(value) < 3 * se).all()


# --- back-tests -------------------------------------------------------------------


def test_a_back_test_compares_with_networks_not_drawn():
    pool = World(objects=200).predictions(26)
    found = back_test(pool, to=[8, 16, 32], networks=6).pools[0]
    assert found.n.tolist() == [8, 16]
    assert "too few to know the truth of 32" in found.warnings[0]
    assert found.sets == 4
    members = disjoint(26, 6, 0)[2]
    ahead = forecast(pool.choose(members), to=[8, 16])
    rest = score(pool.choose(np.setdiff1d(range(26), members)), n=[8, 16])
    np.testing.assert_allclose(
        found.errors["robust"][2], ahead.cnll - rest.cnll, atol=2e-6
    )
    np.testing.assert_allclose(
        found.halves["robust"][2], ahead.high - ahead.cnll, rtol=1e-3
    )
    n, cnll = ahead.curve.n, ahead.curve.cnll
    line = np.linalg.lstsq(np.column_stack([np.ones(6), 1 / n]), cnll, rcond=None)[0]
    np.testing.assert_allclose(
        found.errors["line"][2],
        line[0] + line[1] / np.array([8, 16]) - rest.cnll,
        atol=2e-6,
    )


def test_the_figures_of_a_back_test_follow_from_its_errors(tested):
    each = tested.pools[0]
    errors, halves = each.errors["robust"], each.halves["robust"]
    np.testing.assert_allclose(each.rmse("robust").value ** 2, (errors**2).mean(axis=0))
    np.testing.assert_allclose(each.bias("robust").value, errors.mean(axis=0))
    inside = (np.abs(errors) <= halves).mean(axis=0)
    np.testing.assert_allclose(each.coverage("robust").value, inside)
    records = each.records()
    assert len(records) == 3 * len(FAR)
    assert records[0]["rmse"] == each.rmse("robust").value[0]
    assert len(each.table().splitlines()) == 2 + len(records)


def test_errors_of_the_root_mean_square_are_right():
    """The delta method against many back-tests that never were."""
    random = np.random.default_rng(0)
    from ensize.forecasts import BackTest

    found = []
    for _ in range(400):
        errors = {"line": random.standard_normal((40, 1))}
        none = np.zeros((40, 1))
        made = BackTest(
            "x", 240, 6, np.ones(1), none[0], none[0], errors, {}, {}, (), ()
        )
        found.append([float(x[0]) for x in made.rmse("line")])
    root, se = np.array(found).T
    assert se.mean() == pytest.approx(root.std(), rel=0.1)


def test_several_pools_are_averaged_geometrically(tested):
    rmse = [
        [each.rmse(method).value for method in ("robust", "paper")]
        for each in tested.pools
    ]
    logs = [np.log(one / other).mean() for one, other in rmse]
    ratio = tested.ratio("robust", "paper")
    assert ratio.value == pytest.approx(math.exp(np.mean(logs)))
    assert ratio.low < ratio.value < ratio.high
    # Two pools are two numbers: their bound is that of Student with one degree.
    half = stats.t.ppf(0.975, 1) * np.std(logs, ddof=1) / math.sqrt(2)
    assert math.log(ratio.high / ratio.value) >= half * (1 - 1e-9)
    assert tested.ratio("robust", "robust") == (1, 1, 1)


def test_a_summary_has_every_figure(tested):
    named = [each["figure"] for each in tested.summary()]
    assert named == [
        "error of robust / paper",
        "error of robust / line",
        "coverage of robust",
        "half-width / error of robust",
        "coverage of paper",
        "half-width / error of paper",
    ]
    assert "Together: 2 pools, 80 sets" in tested.table()


# --- what is refused --------------------------------------------------------------

TWO = SIX.choose([0, 1])


@pytest.mark.parametrize(
    ("pool", "options", "said"),
    [
        (TWO, {}, "there are 2 networks, but a forecast by the robust method needs"),
        (SIX.choose([0]), {}, "there is 1 network, but"),
        (SIX.choose([0, 1, 2]), {"method": "paper"}, "needs at least 4"),
        (SIX, {"to": [0]}, "to is 0; an ensemble has a whole number"),
        (SIX, {"to": 2.5}, "to is 2.5"),
        (SIX, {"to": [math.nan]}, "to is nan"),
        (SIX, {"level": 90}, "level is 90"),
        (SIX, {"level": "much"}, "level is 'much'"),
        (SIX, {"method": "robst"}, "did you mean 'robust'"),
        (SIX, {"within": "0%"}, "within is '0%'"),
        (SIX, {"within": "a"}, "within is 'a'"),
        (SIX, {"apply": "never"}, "apply is 'never'"),
        (SIX, {"seed": -1}, "seed is -1"),
        (SIX, {"calibrate_on": TWO}, "are of 2 networks, but the pool has 6"),
        ([[1.0]], {}, "forecast was given list"),
    ],
)
def test_what_makes_no_forecast_is_refused(pool, options, said):
    with pytest.raises(InputError, match=said):
        forecast(pool, **options)


@pytest.mark.parametrize(
    ("pool", "options", "said"),
    [
        (SIX, {}, "has 6 networks, but a back-test from sets of 6 needs 14 or more"),
        ([], {}, "was given no pool"),
        ("store", {}, "was given str"),
        ([SIX, "x"], {}, "was given str"),
        (SIX, {"networks": 2}, "networks is 2; give a whole number from 3 on"),
        (SIX, {"methods": ["best"]}, "methods is 'best'"),
        (SIX, {"methods": []}, "methods is empty"),
        (SIX, {"truth": [1.0, 2.0]}, "truth has 2 values for 4 numbers"),
        ([SIX, SIX], {"calibrate_on": SIX}, "belongs to one pool"),
        (SIX, {"to": [math.inf]}, "give finite numbers"),
        (SIX, {"calibrate_on": TWO}, "are of 2 networks, but the pool has 6"),
    ],
)
def test_what_cannot_be_back_tested_is_refused(pool, options, said):
    with pytest.raises(InputError, match=said):
        back_test(pool, **options)


def test_scores_that_are_none_have_no_equivalent(ahead):
    for wrong in (math.nan, "0.4", None):
        with pytest.raises(InputError, match="give a CNLL"):
            ahead.equivalent(wrong)


# --- the verb ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two pools: one to forecast from, one to back-test on."""
    made = Store(tmp_path_factory.mktemp("forecasts") / "store")
    for name, count in (("few", 6), ("many", 16)):
        pool = World(objects=200, size=count).predictions(count)
        for i in range(count):
            made.add(name, i, pool.logits(i, 0, 200), pool.targets)
    return made.path


def test_the_verb_prints_the_contracts_json(store):
    code, out, err = run("forecast", store, "--pool", "few", "--to", "8,inf", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    found = forecast(Store.open(store).read("few"), to=[8, math.inf])
    assert said["law"]["exponent"] == found.law.exponent
    assert {"limit", "gain", "rmse", "rmse_log2", "status", "message"} < set(
        said["law"]
    )
    assert said["limit"] == found.limit._asdict()
    assert said["forecasts"][0] == found.records()[0]
    assert said["forecasts"][1]["n"] is None
    assert said["odd"] == []
    assert said["advice"] == list(found.advice)
    assert said["options"]["pool"] == "few"
    assert said["warnings"] == []


def test_the_verb_prints_a_table_and_advice(store):
    code, out, _ = run(
        *("forecast", store, "--pool", "few", "--objects", "--equivalent", "0.45")
    )
    assert code == 0
    assert "luck of the networks and test set" in out
    assert [line.split()[0] for line in out.splitlines()[2:7]] == [
        "8",
        "16",
        "32",
        "64",
        "∞",
    ]
    assert "Network number 7 lowers CNLL" in out
    assert "A CNLL of 0.45 is worth" in out


def test_the_verb_back_tests_the_large_pools_of_a_store(store):
    options = ("forecast", store, "--back-test", "--to", "8")
    code, out, _ = run(*options)
    assert code == 0
    assert "many: 2 disjoint sets of 6 of 16 networks" in out
    assert "few" not in out
    said = json.loads(run(*options, "--json")[1])
    assert [each["name"] for each in said["pools"]] == ["many"]
    assert {each["method"] for each in said["points"]} == {"robust", "paper", "line"}
    assert said["together"][0]["figure"] == "error of robust / paper"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "0"], "to is 0; an ensemble has a whole number of networks"),
        (["--to", "many"], "--to is 'many'; give whole numbers with commas"),
        (["--level", "1"], "level is 1.0; give a number between 0 and 1"),
        (["--within", "-1%"], "within is '-1%'"),
        (["--back-test"], "needs 14 or more; give a larger pool"),
        (["--back-test", "--objects"], "leave --objects and --equivalent away"),
        (["--calibrate-targets", "x.npy"], "--calibrate-targets goes with"),
        (["--equivalent", "nan"], "score is nan; give a CNLL"),
    ],
)
def test_mistakes_end_with_one_sentence(monkeypatch, capsys, store, arguments, said):
    told = mistake(monkeypatch, capsys, "forecast", store, "--pool", "few", *arguments)
    assert said in told
    assert told.count("\n") == 1
