"""Worlds against closed forms, quadrature by others, and pools drawn from them."""

import dataclasses
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from ensize.checks import InputError
from ensize.synthetic import Family, LawPlane, World, noisy_curve


def log_softmax_of_true(pool):
    """Log-probabilities of the true class, (networks, objects), in float64."""
    logits = np.stack(
        [pool.logits(i, 0, pool.objects) for i in range(pool.networks)]
    ).astype(float)
    logits -= np.logaddexp.reduce(logits, axis=2, keepdims=True)
    return logits[:, np.arange(pool.objects), pool.targets]


def probability(margin, world, temperature):
    """p of the true class, in mpmath, from the recipe as the docstring states it."""
    z = [margin, 0.0] + [-3.0] * (world.classes - 2)
    powers = [mpmath.exp(world.confidence * each / temperature) for each in z]
    return powers[0] / mpmath.fsum(powers)


worlds = st.builds(
    World,
    classes=st.sampled_from([2, 10, 100]),
    objects=st.integers(1, 200),
    margin=st.floats(-1, 4),
    spread=st.floats(0, 4),
    noise=st.floats(0, 2),
    luck=st.floats(0, 1),
    confidence=st.floats(0.5, 3),
)


def test_integral_is_the_binomial_sum_of_two_opinions(monkeypatch):
    """Networks of two opinions have a closed form, which the integral meets."""
    high, low = np.linspace(0.35, 0.99, 32), np.geomspace(1e-6, 0.3, 32)
    chance = np.array([0.3, 0.7])
    monkeypatch.setattr(
        World, "_says", lambda *_: (np.stack([high, low], axis=1), chance)
    )
    n = np.array([1, 2, 3, 7, 40, 1000])
    exact = []
    for size in n:
        k = np.arange(size + 1)
        log_ways = gammaln(size + 1) - gammaln(k + 1) - gammaln(size - k + 1)
        ways = np.exp(log_ways + k * np.log(0.3) + (size - k) * np.log(0.7))
        means = (k * high[:, None] + (size - k) * low[:, None]) / size
        exact.append(-(np.log(means) @ ways).mean())
    np.testing.assert_allclose(World(objects=320).nll(n), exact, rtol=1e-11)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("margin", [0.7, -12.0])
def test_one_network_and_infinitely_many(margin, temperature):
    """NLL_1 = -E log p and NLL_∞ = -log E p, by mpmath, for hopeless objects too."""
    world = World(objects=1, classes=5, margin=margin, spread=0.0, noise=1.1, luck=0.4)
    deviation = mpmath.sqrt(1.1**2 + 0.4**2)

    def expect(f):
        return mpmath.quad(
            lambda e: mpmath.npdf(e) * f(margin + deviation * e), range(-20, 21)
        )

    with mpmath.workdps(20):
        single = expect(lambda m: -mpmath.log(probability(m, world, temperature)))
        endless = -mpmath.log(expect(lambda m: probability(m, world, temperature)))
    known = world.nll([1, np.inf], temperature=temperature)
    np.testing.assert_allclose(known, [float(single), float(endless)], rtol=1e-11)


def test_pairs_by_another_rule():
    """NLL_2 is that of Gauss and Hermite's rule in both networks' margins."""
    world = World(objects=1, classes=3, margin=-0.5, spread=0.0, noise=0.8, luck=0.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    p = 1 / (1 + (1 + np.exp(-4.5)) * np.exp(-1.5 * (-0.5 + 0.8 * nodes)))
    pairs = -np.log((p[:, None] + p) / 2)
    assert world.nll(2) == pytest.approx(weights @ pairs @ weights / (2 * np.pi))


@given(worlds, st.floats(0.5, 3))
@settings(deadline=None, max_examples=30)
def test_nll_falls_and_flattens_toward_its_limit(world, temperature):
    """NLL_n never rises, falls by less and less, and ends at -log μ."""
    curve = world.nll([*range(1, 9), np.inf], temperature=temperature)
    falls = -np.diff(curve[:-1])
    assert (falls >= -1e-12).all()
    assert (np.diff(falls) <= 1e-12).all()
    assert curve[-2] >= curve[-1] - 1e-12
    law = world.expansion(temperature=temperature)
    assert curve[-1] == pytest.approx(law.limit, abs=1e-12)


@given(worlds, st.floats(0.5, 2))
@settings(deadline=None, max_examples=30)
def test_confidence_is_a_temperature(world, factor):
    """Logits κ times larger at a temperature κ times higher say the same."""
    louder = dataclasses.replace(world, confidence=world.confidence * factor)
    np.testing.assert_allclose(
        louder.nll([1, 5], temperature=1.3 * factor),
        world.nll([1, 5], temperature=1.3),
        rtol=1e-11,
    )


def test_pools_have_the_law_of_their_world():
    """The mean NLL of ensembles drawn is the known one, within four errors."""
    world = World(objects=64, classes=4, luck=0.3)
    says = np.exp(log_softmax_of_true(world.predictions(6000)) / 1.0)
    for n in (1, 2, 5):
        ensembles = says.reshape(-1, n, 64).mean(axis=1)
        nll = -np.log(ensembles).mean(axis=1)
        error = nll.std(ddof=1) / np.sqrt(len(nll))
        assert abs(nll.mean() - world.nll(n)) < 4 * error < 0.02


def test_luck_scatters_scores_but_not_their_mean():
    """Luck enters the law as noise does, and makes networks differ as a whole."""
    lucky, plain = World(noise=1.2, luck=0.5), World(noise=1.3, luck=0.0)
    np.testing.assert_allclose(lucky.nll([1, 4, 64]), plain.nll([1, 4, 64]), rtol=1e-12)
    spread = [
        (-log_softmax_of_true(world.predictions(60)).mean(axis=1)).std()
        for world in (lucky, plain)
    ]
    assert spread[0] > 4 * spread[1] > 0


def test_a_network_depends_on_world_seed_and_index_alone():
    """Pools are prefixes of each other; other seeds, sizes and worlds differ."""
    world = World(objects=50)

    def logits(pool):
        return np.stack([pool.logits(i, 0, 50) for i in range(pool.networks)])

    twelve = world.predictions(12)
    np.testing.assert_array_equal(logits(world.predictions(6)), logits(twelve)[:6])
    chosen = world.predictions([9, 3])
    np.testing.assert_array_equal(logits(chosen), logits(twelve)[[9, 3]])
    assert chosen.labels == ("network 9", "network 3")
    others = (
        world.predictions(12, seed=1),
        dataclasses.replace(world, size=5000).predictions(12),
        dataclasses.replace(world, size=6000).predictions(12),
    )
    drawn = [logits(twelve), *map(logits, others)]
    for i, one in enumerate(drawn):
        for other in drawn[:i]:
            assert (np.abs(one - other).max(axis=(1, 2)) > 0.1).all()
    np.testing.assert_array_equal(others[1].targets, twelve.targets)
    assert others[1].pool.size == 5000
    assert (
        dataclasses.replace(world, seed=1).predictions(1).targets != twelve.targets
    ).any()
    assert world.predictions(1, dtype=np.float64).dtype is np.float64
    assert twelve.dtype is np.float32


def test_networks_of_one_pool_are_independent():
    """Margins of two networks on equal objects are uncorrelated."""
    world = World(objects=4000, classes=2, spread=0.0, luck=0.0, confidence=1.0)
    pool = world.predictions(20)
    margins = np.stack([pool.logits(i, 0, 4000) for i in range(20)])
    margins = margins[:, np.arange(4000), pool.targets]
    correlations = np.corrcoef(margins)[np.triu_indices(20, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(4000)
    assert margins.mean() == pytest.approx(2.5, abs=4 * 1.2 / np.sqrt(80_000))
    assert margins.std() == pytest.approx(1.2, rel=0.02)


def test_objects_are_in_no_order():
    """Easy and hard objects are mixed: the first half is like the second."""
    pool = World(objects=4000, classes=2, confidence=1.0).predictions(1)
    margins = pool.logits(0, 0, 4000)[np.arange(4000), pool.targets]
    assert abs(margins[:2000].mean() - margins[2000:].mean()) < 4 * 2.8 / np.sqrt(1000)
    assert np.bincount(pool.targets).min() > 1800


@pytest.mark.parametrize(
    "world",
    [
        World(),
        World(classes=100, margin=1.0, spread=3.0, noise=0.8),
        Family.splits_pay().of(10_000),
        Family.single_wins().of(20_000),
    ],
)
def test_no_temperature_is_better_than_the_best(world):
    """LE-NLL_n is the least of a fine grid of temperatures, to the grid's error."""
    n = [1, 4, 64, np.inf]
    grid = world.confidence * np.geomspace(1 / 4, 4, 109)
    table = np.array([world.nll(n, temperature=t) for t in grid])
    temperature, least = world.best(n)
    assert (least <= table.min(axis=0)).all()
    np.testing.assert_allclose(least, table.min(axis=0), rtol=1e-3)
    np.testing.assert_allclose(temperature, grid[table.argmin(axis=0)], rtol=0.03)
    for k, t, value in zip(n, temperature, least, strict=True):
        nearby = (
            world.nll(k, temperature=t * 1.001),
            world.nll(k, temperature=t / 1.001),
        )
        assert value < min(nearby) < value + 1e-5


def test_cnll_is_close_to_le_nll():
    """With a thousand objects the whole CNLL is below LE-NLL by less than 0.5 %."""
    world = World(objects=1000)
    logs = []
    pool = world.predictions(80)
    logits = np.stack([pool.logits(i, 0, 1000) for i in range(80)]).astype(float)
    temperatures = np.geomspace(0.7, 1.8, 45)
    for t in temperatures:
        scaled = logits / t - np.logaddexp.reduce(logits / t, axis=2, keepdims=True)
        logs.append(scaled[:, np.arange(1000), pool.targets])
    says = np.exp(logs).reshape(45, 20, 4, 1000).mean(axis=2)
    nll = -np.log(says).mean(axis=2)
    inside, outside = nll.min(axis=0).mean(), nll.mean(axis=1).min()
    assert 0.995 * outside < inside < outside
    error = nll[22].std(ddof=1) / np.sqrt(20)
    assert abs(outside - world.best(4)[1]) < 4 * error < 0.02


def test_best_split_rises_with_the_budget_where_splits_pay():
    """From small to large budgets the best n goes from 2 to 16, and never back."""
    family = Family.splits_pay()
    best = [family.splits(b).best for b in (10**5, 10**6, 4 * 10**6, 10**7)]
    assert best == [2, 4, 8, 16]


def test_a_single_network_wins_at_every_budget_where_it_should():
    """Each further halving of the networks costs, at budgets over four decades."""
    family = Family.single_wins()
    small = family.of(62_500)  # a sixteenth: noise and luck are doubled
    assert (small.noise, small.luck) == pytest.approx((0.8, 0.2))
    for budget in (20_000, 10**6, 10**8):
        splits = family.splits(budget)
        assert splits.best == 1
        assert (np.diff(splits.value) > 0).all()


def test_splits_are_what_their_worlds_say():
    """A split's value is LE-NLL_n of the world of size B/n, found by brute force."""
    family = Family.splits_pay(objects=500, seed=3)
    splits = family.splits(100_000, n=(1, 3, 7, 12))
    np.testing.assert_array_equal(splits.n, [1, 3, 7])  # 12 would be too small
    np.testing.assert_array_equal(splits.size, [100_000, 33_333, 14_285])
    temperatures = np.linspace(0.8, 2.5, 171)
    for n, size, value in zip(splits.n, splits.size, splits.value, strict=True):
        world = family.of(int(size))
        s = size / 10**6
        assert world.margin == pytest.approx(3.0 - 0.15 / np.sqrt(s))
        brute = min(world.nll(n, temperature=t) for t in temperatures)
        assert value == pytest.approx(brute, abs=2e-5)


@given(
    shortfall=st.floats(0.01, 0.5),
    size_exponent=st.floats(-1, -0.2),
    gain=st.floats(0.01, 0.5),
    gain_exponent=st.floats(-0.5, 0.2),
    exponent=st.floats(-1.2, -0.3),
    budget=st.integers(10**5, 10**9),
)
@settings(deadline=None)
def test_optimum_of_a_law_plane(budget, **parameters):
    """The closed form is the minimum over real n; the best power of 2 is next to it."""
    plane = LawPlane(**parameters, smallest=1)
    optimum = plane.optimum(budget)
    assert optimum >= 1

    def value(log_n):
        return float(plane(np.exp(log_n), budget / np.exp(log_n)))

    found = minimize_scalar(value, bounds=(0, 40), method="bounded")
    assert value(np.log(optimum)) <= found.fun + 1e-9
    doubling = [2**k for k in range(15)]
    best = plane.splits(budget, n=doubling).best
    if optimum < doubling[-1] and budget / optimum > 1e4:  # B // n is B/n, nearly
        assert best / 2 * 0.99 <= optimum <= best * 2 * 1.01


def test_a_law_plane_without_advantage():
    """Where gain is lost in size as fast as n wins it back, one network is best."""
    plane = LawPlane(gain_exponent=-0.9)
    assert plane.optimum(10**6) == 1.0
    assert plane.splits(10**6).best == 1


def test_noisy_curves_without_noise_are_laws():
    """Without noise the points lie on c + b·m^a."""
    m = np.array([1.0, 1.5, 4.0, 60.0])
    np.testing.assert_allclose(
        noisy_curve(m, (0.4, 0.7, -0.6)), 0.4 + 0.7 * m**-0.6, rtol=1e-14
    )


def test_noisy_curves_have_the_errors_that_they_state():
    """Steps err independently and relatively; a shift moves all points at once."""
    m, law = np.array([1.0, 2.0, 4.0]), (0.5, 0.2, -1.0)
    true = noisy_curve(m, law)
    curves = np.array([noisy_curve(m, law, noise=0.1, seed=i) for i in range(2000)])
    steps = np.diff(np.column_stack([curves, np.full(2000, 0.5)]), axis=1)
    relative = steps / np.diff(np.append(true, 0.5)) - 1
    np.testing.assert_allclose(relative.mean(axis=0), 0, atol=4 * 0.1 / np.sqrt(2000))
    np.testing.assert_allclose(relative.std(axis=0), 0.1, rtol=0.08)
    assert np.abs(np.corrcoef(relative.T) - np.eye(3)).max() < 0.1
    shifted = np.array([noisy_curve(m, law, shift=0.05, seed=i) for i in range(2000)])
    moves = shifted - true
    np.testing.assert_allclose(moves, moves[:, :1] * np.ones(3), atol=1e-14)
    assert moves[:, 0].std() == pytest.approx(0.05 * 0.2, rel=0.08)
    np.testing.assert_array_equal(noisy_curve(m, law, noise=0.1, seed=7), curves[7])


def test_import_is_light():
    """Neither SciPy nor a plotting library is loaded by the import."""
    code = (
        "import sys, ensize.synthetic;"
        "sys.exit(' '.join({'scipy', 'matplotlib', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ""


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: World(classes=1), "classes is 1"),
        (lambda: World(objects=0), "objects is 0"),
        (lambda: World(noise=-1.0), "noise is -1.0"),
        (lambda: World(luck=np.nan), "luck is nan"),
        (lambda: World(margin=np.inf), "margin is inf"),
        (lambda: World(size=0), "size is 0"),
        (lambda: World(confidence=0), "confidence is 0"),
        (lambda: World().predictions(0), "networks is 0"),
        (lambda: World().predictions([-1]), "index is -1"),
        (lambda: World().nll(0), "n is 0"),
        (lambda: World().nll(1.5), "n is 1.5"),
        (lambda: World().nll(1, temperature=0), "temperature is 0"),
        (lambda: World().nll(1, temperature=0.03), "at temperature 0.03"),
        (lambda: World(noise=4.0).best(np.inf), "less noise or more spread"),
        (lambda: World(spread=0.0).best(np.inf), "factor of four"),
        (lambda: Family().of(9_999), "size is 9999.*10000"),
        (lambda: Family().splits(9_999), "budget is 9999"),
        (lambda: LawPlane().splits(100_000, n=(0,)), "n is 0"),
        (lambda: LawPlane(shortfall=0.0), "shortfall is 0.0"),
        (lambda: LawPlane(exponent=0.0), "below 0"),
        (lambda: LawPlane().splits(100_000, n=(11,)), "no split"),
        (lambda: noisy_curve([1, 1, 2], (0.1, 0.1, -1.0)), "m does not ascend"),
        (lambda: noisy_curve([0, 1], (0.1, 0.1, -1.0)), "m does not ascend"),
    ],
)
def test_what_cannot_be_used_is_named(call, says):
    """A mistake raises InputError with the value and the remedy."""
    with pytest.raises(InputError, match=says):
        call()
