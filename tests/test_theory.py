"""Theory against closed forms, all subsets, and worlds whose law is known."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensize import theory
from ensize.checks import InputError
from ensize.laws import fit
from ensize.predictions import Predictions
from ensize.synthetic import World
from ensize.theory import Expansion, expand_after, expand_before, lower_envelope


def two_opinions(n, *, high, low, chance):
    """-E log p̄_n of networks that say `high` with this chance, else `low`."""
    n = int(n)
    with mpmath.workdps(40):
        high, low, chance = (mpmath.mpf(str(x)) for x in (high, low, chance))
        terms = (
            mpmath.binomial(n, k)
            * chance**k
            * (1 - chance) ** (n - k)
            * mpmath.log((k * high + (n - k) * low) / n)
            for k in range(n + 1)
        )
        return -mpmath.fsum(terms)


def all_subsets(loss, count):
    """Mean loss of the subsets of each size 1, …, count of a pool's networks."""
    return np.array(
        [
            np.mean([loss(list(s)) for s in itertools.combinations(range(count), n)])
            for n in range(1, count + 1)
        ]
    )


def through_last_two(curve):
    """Limit and gain of the law c + b/n through the last two points of a curve."""
    last = len(curve)
    limit = last * curve[-1] - (last - 1) * curve[-2]
    return limit, last * (last - 1) * (curve[-2] - curve[-1])


def some_pool(networks=6, objects=40, classes=5, scale=1.5, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(objects, classes))
    logits = common + rng.normal(size=(networks, objects, classes))
    return Predictions.of(scale * logits, rng.integers(classes, size=objects))


def softmaxes(pool):
    logits = np.stack(
        [pool.logits(i, 0, pool.objects) for i in range(pool.networks)]
    ).astype(float)
    logits -= np.logaddexp.reduce(logits, axis=2, keepdims=True)
    return np.exp(logits)


def nll_after(pool, temperature):
    """NLL of a subset by the paper's definition: softmax{log(mean p)/τ}."""
    says, row = softmaxes(pool), np.arange(pool.objects)

    def loss(members):
        powers = says[members].mean(axis=0) ** (1 / temperature)
        return -np.log(powers[row, pool.targets] / powers.sum(axis=1)).mean()

    return loss


@pytest.mark.parametrize(
    ("high", "low", "chance"), [(0.9, 0.3, 0.5), (0.7, 0.05, 0.2), (0.6, 0.5, 0.9)]
)
def test_expansion_of_a_closed_form(high, low, chance):
    """n²(NLL_n - limit - first/n) tends to second as 1/n does."""
    mean = chance * high + (1 - chance) * low
    gap, odds = high - low, chance * (1 - chance)
    law = Expansion.of_moments(
        [mean], [odds * gap**2], third=[odds * (1 - 2 * chance) * gap**3]
    )
    errors = []
    for n in (200, 400, 800):
        exact = two_opinions(n, high=high, low=low, chance=chance)
        errors.append(
            abs(float((exact - law.limit - law.first / n) * n**2) - law.second)
        )
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.1)
    assert errors[2] == pytest.approx(errors[1] / 2, rel=0.1)
    assert errors[2] < 0.05 * abs(law.second)


def test_expansion_of_a_world():
    """On a known world n(NLL_n - limit) tends to first, the rest over n² to second."""
    world = World()
    law = world.expansion(temperature=1.2)
    n = np.array([125, 250, 500, 1000])
    exact = world.nll(n, temperature=1.2)
    off_first = np.abs((exact - law(n)) * n)
    off_second = np.abs((exact - law(n)) * n**2 - law.second)
    assert world.nll(np.inf, temperature=1.2) == pytest.approx(law.limit, abs=1e-14)
    np.testing.assert_allclose(off_first[1:] / off_first[:-1], 0.5, rtol=0.05)
    np.testing.assert_allclose(off_second[1:] / off_second[:-1], 0.5, rtol=0.05)
    np.testing.assert_allclose(exact, law(n, order=2), rtol=1e-5)
    assert law(np.inf) == law.limit


def test_before_is_the_law_through_the_last_two_points_of_all_subsets():
    """Limit and first are those of the exhaustive curve, to rounding."""
    pool = some_pool()
    says = softmaxes(pool)[:, np.arange(pool.objects), pool.targets]
    curve = all_subsets(lambda s: -np.log(says[s].mean(axis=0)).mean(), 6)
    law = expand_before(says)
    limit, first = through_last_two(curve)
    assert law.limit == pytest.approx(limit, abs=1e-12)
    assert law.first == pytest.approx(first, abs=1e-11)
    np.testing.assert_allclose(law([5, 6]), curve[-2:], rtol=1e-12)
    of_logs = expand_before(np.log(says), logarithms=True)
    assert of_logs.limit == pytest.approx(law.limit, abs=1e-13)
    assert of_logs.first_se == pytest.approx(law.first_se, rel=1e-9)


@pytest.mark.parametrize("count", [4, 8, 12])
def test_bias_from_a_finite_pool(count):
    """-log μ̂ is high by first/ℓ; the limit is low by second/ℓ², no more."""
    # Objects are all pools that there can be, which makes a mean an expectation.
    says = np.transpose(list(itertools.product([0.9, 0.3], repeat=count)))
    truth = Expansion.of_moments([0.6], [0.09], third=[0.0])
    law = expand_before(says)
    plug_in = -np.log(says.mean(axis=0)).mean()
    assert plug_in - truth.limit == pytest.approx(truth.first / count, rel=0.15)
    assert law.limit - truth.limit == pytest.approx(
        -truth.second / (count * (count - 1)), rel=0.25
    )
    assert law.first - truth.first == pytest.approx(2 * truth.second / count, rel=0.25)


def test_bias_and_errors_on_a_world():
    """From six networks limit and first are right on average, and so are errors."""
    world = World(objects=320)
    temperature = float(world.best(4)[0])
    truth = world.expansion(temperature=temperature)
    gain = float(world.nll(1, temperature=temperature)) - truth.limit
    laws, plug_ins = [], []
    for seed in range(150):
        pool = world.predictions(6, seed=seed)
        logits = np.stack([pool.logits(i, 0, 320) for i in range(6)]) / temperature
        logits -= np.logaddexp.reduce(logits, axis=2, keepdims=True)
        logs = logits[:, np.arange(320), pool.targets]
        laws.append(expand_before(np.minimum(logs, 0), logarithms=True))
        plug_ins.append(-np.log(np.exp(logs).mean(axis=0)).mean())
    limits = np.array([law.limit for law in laws])
    firsts = np.array([law.first for law in laws])
    # A tenth of the gain is one standard deviation: 0.03 are four standard errors.
    assert abs(limits.mean() - truth.limit) < 0.03 * gain
    assert np.mean(plug_ins) - truth.limit > 0.1 * gain
    assert firsts.mean() == pytest.approx(truth.first, rel=0.12)
    limit_se = np.sqrt(np.mean([law.limit_se**2 for law in laws]))
    first_se = np.sqrt(np.mean([law.first_se**2 for law in laws]))
    assert 0.8 < limit_se / limits.std(ddof=1) < 1.25
    assert 1.0 < first_se / firsts.std(ddof=1) < 1.7


def test_a_pool_of_64_agrees_with_the_truth():
    """Theory read off 64 networks is within three standard errors of the world's."""
    world = World(objects=2000)
    pool = world.predictions(64)
    says = softmaxes(pool)[:, np.arange(2000), pool.targets]
    law, truth = expand_before(says), world.expansion()
    assert abs(law.limit - truth.limit) < 3 * law.limit_se < 0.03 * truth.limit
    assert abs(law.first - truth.first) < 3 * law.first_se < 0.3 * truth.first
    assert law.plug_in == pytest.approx(truth.first, rel=0.1)


def test_standard_errors_are_the_delete_one_jackknife():
    """They are what leaving out each network and starting again gives."""
    pool = some_pool(networks=7)
    says = softmaxes(pool)[:, np.arange(pool.objects), pool.targets]
    law = expand_before(says)
    kept = [np.delete(says, i, axis=0) for i in range(7)]
    firsts = [expand_before(each).first for each in kept]
    assert law.first_se == pytest.approx(np.std(firsts) * np.sqrt(6), rel=1e-10)
    # Tukey: the limit is the mean of pseudo-values, and so is its error.
    nll = -np.log(says.mean(axis=0)).mean()
    pseudo = [7 * nll + 6 * np.log(each.mean(axis=0)).mean() for each in kept]
    assert law.limit == pytest.approx(np.mean(pseudo), abs=1e-12)
    assert law.limit_se == pytest.approx(np.std(pseudo, ddof=1) / np.sqrt(7))


def test_after_at_temperature_one_is_before():
    """At τ = 1 the Hessian's formula reduces to σ²/2μ², and all else agrees."""
    pool = some_pool()
    says = softmaxes(pool)[:, np.arange(pool.objects), pool.targets]
    after, before = expand_after(pool, temperature=1.0), expand_before(says)
    variance, mean = says.var(axis=0, ddof=1), says.mean(axis=0)
    assert after.plug_in == pytest.approx((variance / (2 * mean**2)).mean(), abs=1e-12)
    assert after.plug_in == pytest.approx(before.plug_in, abs=1e-12)
    assert after.limit == pytest.approx(before.limit, abs=1e-12)
    assert after.first == pytest.approx(before.first, abs=1e-11)
    assert after.limit_se == pytest.approx(before.limit_se, abs=1e-12)


@pytest.mark.parametrize("temperature", [0.3, 0.8, 1.0, 2.5, 12.0])
def test_hessian_is_the_appendix_matrix(temperature):
    """The formula without matrices is ½ Σ cov ∂²f with the matrix written out."""
    pool, gamma = some_pool(), 1 / temperature
    says = softmaxes(pool)
    total = 0.0
    for item, true in enumerate(pool.targets):
        mu = says[:, item].mean(axis=0)
        norm, slopes = (mu**gamma).sum(), mu ** (gamma - 1)
        hessian = -(gamma**2) * np.outer(slopes, slopes) / norm**2
        hessian += np.diag(gamma * (gamma - 1) * mu ** (gamma - 2) / norm)
        hessian[true, true] += gamma / mu[true] ** 2
        total += (np.cov(says[:, item].T) * hessian).sum() / 2
    law = expand_after(pool, temperature=temperature)
    assert law.plug_in == pytest.approx(total / pool.objects, rel=1e-11)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_appendix_matrix_is_the_second_derivative(temperature):
    """For one object, n networks' NLL at small spread is f(μ) + plug_in/n."""
    mu = np.array([0.5, 0.2, 0.3])
    step = 1e-3 * np.array([2.0, -1.0, -1.0])
    pool = Predictions.of(
        np.stack([mu + step, mu - step, mu])[:, None], [0], kind="probabilities"
    )

    def f(x):
        p = [
            mpmath.mpf(float(m)) + x * mpmath.mpf(float(d))
            for m, d in zip(mu, step, strict=True)
        ]
        gamma = mpmath.mpf(1) / mpmath.mpf(temperature)
        return -gamma * mpmath.log(p[0]) + mpmath.log(sum(each**gamma for each in p))

    # The three networks lie at -1, 0 and 1 along the step: their variance is 1.
    curvature = float(mpmath.diff(f, 0, 2))
    law = expand_after(pool, temperature=temperature)
    assert law.plug_in == pytest.approx(curvature / 2, rel=1e-9)


@pytest.mark.parametrize("temperature", [0.4, 1.7, 5.0])
def test_after_is_the_law_through_the_last_two_points_of_all_subsets(temperature):
    """Limit and first are those of the exhaustive curve, temperature after."""
    pool = some_pool(scale=0.7)  # tame enough that no object's limit is held at 0
    limit, first = through_last_two(all_subsets(nll_after(pool, temperature), 6))
    law = expand_after(pool, temperature=temperature)
    assert law.limit == pytest.approx(limit, abs=1e-11)
    assert law.first == pytest.approx(first, abs=1e-10)
    assert law.second is None
    assert law.first_se is None


def test_gain_is_negative_where_nll_rises_with_n():
    """After averaging at a high temperature, more networks may be worse."""
    rng = np.random.default_rng(3)
    logits = rng.normal(scale=0.5, size=(6, 30, 4))
    targets = rng.integers(4, size=30)
    logits[:, np.arange(30), targets] += 3.0
    pool = Predictions.of(logits, targets)
    rising = all_subsets(nll_after(pool, 3.0), 6)
    falling = all_subsets(nll_after(pool, 1.0), 6)
    assert (np.diff(rising) > 0).all()
    assert (np.diff(falling) < 0).all()
    law = expand_after(pool, temperature=3.0)
    assert law.first < 0 < law.limit
    assert law.plug_in == pytest.approx(law.first, rel=0.1)


def test_after_reads_blocks(monkeypatch):
    """A small block gives the same answer as one block."""
    pool = some_pool(objects=53)
    whole = expand_after(pool, temperature=1.5)
    monkeypatch.setattr(theory, "_BLOCK", 6 * 5 * 7)
    assert expand_after(pool, temperature=1.5) == whole


@pytest.mark.parametrize("temperature", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_huge_logits_stay_finite(temperature, dtype):
    """Logits of ±1e4, and classes that only one network sees, give numbers."""
    rng = np.random.default_rng(1)
    logits = rng.choice([-1e4, -3.0, 0.0, 5.0, 1e4], size=(5, 60, 4)).astype(dtype)
    law = expand_after(
        Predictions.of(logits, rng.integers(4, size=60)), temperature=temperature
    )
    assert np.isfinite([law.limit, law.first, law.plug_in, law.limit_se]).all()
    assert law.limit >= 0


def test_a_lone_network_does_not_drive_the_limit_below_zero():
    """Where one network alone is right, the plain jackknife would leap below 0."""
    logs = np.array([[-0.1], [-200.0], [-200.0], [-200.0]])
    law = expand_before(logs, logarithms=True)
    assert law.limit == 0.0
    assert np.isfinite(law.first_se)
    zeros = expand_before(np.array([[0.9], [0.0], [0.0], [0.0]]))
    assert zeros.limit == 0.0
    assert zeros.first == pytest.approx(-4 * np.log(0.9 / 4))


def test_networks_that_agree_gain_nothing():
    """Identical networks have limit NLL_1, and nothing to gain."""
    says = np.tile([0.9, 0.2, 0.6], (4, 1))
    law = expand_before(says)
    assert law.limit == pytest.approx(-np.log([0.9, 0.2, 0.6]).mean(), abs=1e-14)
    np.testing.assert_allclose([law.first, law.plug_in, law.first_se], 0, atol=1e-14)


coefficients = st.lists(
    st.tuples(st.integers(0, 64), st.integers(-16, 64)), min_size=1, max_size=12
)


@given(coefficients, st.sampled_from([-0.5, -1.0, -2.0]))
@settings(deadline=None)
def test_proposition_2(laws, exponent):
    """Limits never rise along n, gains never fall; in the end one law is left."""
    # n^a are powers of 2 and so are the steps of c and b: sums are exact.
    limits, gains = np.transpose(laws) / 64
    n = np.append(4.0 ** np.arange(12), np.inf)
    envelope = lower_envelope(limits, gains, n=n, exponent=exponent)
    table = limits[:, None] + gains[:, None] * n**exponent
    np.testing.assert_array_equal(envelope.values, table.min(axis=0))
    np.testing.assert_array_equal(envelope.values, table[envelope.best, range(13)])
    assert (np.diff(limits[envelope.best]) <= 0).all()
    assert (np.diff(gains[envelope.best]) >= 0).all()
    assert (envelope.limit, envelope.gain) == min(zip(limits, gains, strict=True))
    final = envelope.limit + envelope.gain * n**exponent
    at_end = n >= envelope.settled * (1 + 1e-9)
    np.testing.assert_array_equal(envelope.values[at_end], final[at_end])
    before = n < envelope.settled * (1 - 1e-9)
    assert (envelope.values[before] < final[before]).all()


def test_lower_envelope_of_a_world_is_its_le_nll():
    """LE-NLL_n approaches c* + b*/n faster than 1/n, as Proposition 2 says."""
    world = World()
    temperatures = np.linspace(0.6, 1.6, 101)
    laws = [world.expansion(temperature=t) for t in temperatures]
    n = np.array([256, 1024, 4096])
    envelope = lower_envelope(
        [law.limit for law in laws], [law.first for law in laws], n=n
    )
    exact = np.array([world.nll(n, temperature=t) for t in temperatures]).min(axis=0)
    rest = n * np.abs(exact - (envelope.limit + envelope.gain / n))
    assert (rest[1:] < 0.5 * rest[:-1]).all()
    assert rest[-1] < 0.01 * envelope.gain
    np.testing.assert_allclose(envelope.values, exact, rtol=1e-3)
    assert (np.diff(temperatures[envelope.best]) <= 0).all()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: expand_before(np.full((2, 5), 0.5)), "2 networks.*three"),
        (lambda: expand_before(np.full(5, 0.5)), r"shape \(5,\)"),
        (lambda: expand_before(np.full((3, 0), 0.5)), r"shape \(3, 0\)"),
        (lambda: expand_before([[0.5], [np.nan], [0.5]]), "network 1 .*nan.*object 0"),
        (lambda: expand_before([[0.5], [0.5], [1.5]]), "network 2 .*0 to 1"),
        (lambda: expand_before([[-0.5], [-1.0], [-2.0]]), "logarithms=True"),
        (
            lambda: expand_before([[-1.0], [-np.inf], [-2.0]], logarithms=True),
            "network 1 has -inf",
        ),
        (
            lambda: expand_before(np.full((3, 1), 0.5), logarithms=True),
            "-inf to 0",
        ),
        (lambda: expand_after(some_pool(networks=2)), "2 networks"),
        (lambda: expand_after(some_pool(), temperature=0.0), "temperature is 0.0"),
        (lambda: expand_after(some_pool())(8, order=2), "ask for order 1"),
        (lambda: expand_after(some_pool())(8, order=3), "order is 3"),
        (lambda: expand_after(some_pool())(0), "n is 0"),
        (lambda: lower_envelope([0.1], [0.1, 0.2], n=[1]), r"shape \(1,\)"),
        (lambda: lower_envelope([], [], n=[1]), r"shape \(0,\)"),
        (lambda: lower_envelope([np.nan], [0.1], n=[1]), "not finite"),
        (lambda: lower_envelope([0.1], [0.1], n=[0.5]), "n is \\[0.5\\]"),
        (lambda: lower_envelope([0.1], [0.1], n=[2], exponent=0.5), "exponent is 0.5"),
    ],
)
def test_what_cannot_be_used_is_named(call, says):
    """A mistake raises InputError with the value and the remedy."""
    with pytest.raises(InputError, match=says):
        call()


def test_fit_and_theory_agree_as_n_grows():
    """Fitted further out, a law has theory's limit, coefficient and exponent."""
    world = World()
    temperature, limit = world.best(np.inf)
    expansion = world.expansion(temperature=temperature)
    off = []
    for start in (1, 8, 64):
        n = start * np.array([1, 2, 3, 4, 6, 8])
        law = fit(n, world.nll(n, temperature=temperature), prior=None)
        coefficient = law.gain * start ** (law.exponent + 1)
        off.append(
            [
                abs(law.limit - limit) * start,
                abs(coefficient / expansion.first - 1),
                abs(law.exponent + 1),
            ]
        )
    # The exponent may pass -1 on its way: the terms beyond 1/n have either sign.
    assert np.all(np.diff(off, axis=0)[:, :2] < 0)
    assert off[-1][0] < 2e-3 * expansion.first
    assert off[-1][1] < 0.02
    assert off[-1][2] < 0.01
