import dataclasses
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ensize.draws
from claimed import (
    SIZES,
    evidence_of_plane,
    evidence_of_temperatures,
    remembering,
)
from ensize import InputError, Predictions, Sketch, Store, fit
from ensize.claims import CLAIMS, check_claims
from ensize.claims.estimates import Estimate, interval, jackknife, most_striking
from ensize.claims.points import along_n, along_temperature
from ensize.claims.rivals import EXPONENTIAL, LOGARITHMIC, POWER, fit_form
from ensize.claims.verdicts import VERDICTS, Bounds
from ensize.cli import app
from ensize.evidence import Evidence, evidence_of
from ensize.forecasts import BackTest
from ensize.predictions import Pool
from ensize.profiles import Comparison
from ensize.scores import score_ensembles, shares_of
from ensize.splits import OptimalSplits
from ensize.synthetic import Family, World

HOLDS, FAILS, UNSAID = VERDICTS
DOCS = Path(__file__).parent.parent / "docs" / "claims.md"


def power(n, _s=1.0):
    return 0.3 + 0.2 * n**-0.85


def exponential(n, _s=1.0):
    return 0.3 + 0.2 * np.exp(-0.6 * (n - 1))


def logarithmic(n, _s=1.0):
    return 0.6 - 0.05 * np.log(n)


def falling(n, s, *, exponent=-0.5, gain_exponent=-0.1):
    """A law along both: split where many small networks are better."""
    s = s / SIZES[-1]
    return 0.3 + 0.05 * s**exponent + 0.1 * s**gain_exponent * n**-0.9


def steep(n, s):
    return falling(n, s, exponent=-1.2)


def turning(n, s):
    """The fourth size is the best, and larger ones are surely worse."""
    return 0.3 + 0.02 * np.log2(s / SIZES[3]) ** 2 + 0.1 * n**-0.9


def lonely(n, s):
    """Ensembles gain next to nothing, and size a lot: no split pays."""
    return 0.2 + 0.2 * (s / SIZES[-1]) ** -0.5 + 0.01 * n**-0.9


def stepped(n, s):
    """Along the budget the best CNLL jumps, as no law does."""
    return np.where(s < SIZES[3], 1.0, 0.3) + 0.001 * n**-0.9


def flattening(t, n, _s):
    """Laws with a nearer to -1, and with less gain, as the temperature grows."""
    return 0.3 + 0.1 * np.log(t) ** 2 + 0.3 / t**2 * n ** -(1 - 0.3 / t)


def steepening(t, n, _s):
    """The other way round."""
    return 0.3 + 0.1 * np.log(t) ** 2 + 0.05 * t * n ** -(1 - 0.1 * t)


def lawless(t, n, _s):
    return 0.3 + 0.1 * np.log(t) ** 2 + 0.2 * np.exp(-0.6 * (n - 1))


def best_at(place):
    """NLL whose best temperature is exp(place(n, s)); parabolas in log τ."""
    return lambda t, n, s: (
        0.3 + 0.2 / n + 0.1 * (np.log(t) - place(n, s / SIZES[-1])) ** 2
    )


SETTLING = best_at(lambda n, s: 0.2 + 0.1 * np.log(s) / 3 + 0.2 / n)
RUNNING = best_at(lambda n, s: 0.4 - 0.1 * np.log(s) / 3 - 0.05 * np.log2(n) ** 2)
SMALLER = best_at(lambda n, s: 0.4 - 0.1 * np.log(s) / 3 + 0.2 / n)


def comparisons(difference, error, ensembles=8):
    """Evidence that remembers how CNLL differs between the ways of applying."""
    found = evidence_of_plane(falling)
    memory = {}
    for k in range(len(found.pools)):
        apart = np.array([0.0, difference * (1 + 0.1 * k)])
        none = np.zeros(2)
        memory["comparison", k] = Comparison(
            n=np.array([1, 2]),
            ensembles=np.array([2 * ensembles, ensembles]),
            before=np.ones(2) + apart,
            after=np.ones(2),
            before_whole=np.ones(2),
            after_whole=np.ones(2),
            error=np.array([0.0, error]),
            error_whole=none,
        )
    return remembering(found, memory=memory)


def foresight(errors, sets=5):
    """Evidence that remembers how far predictions from six were off."""
    found = evidence_of_plane(falling)
    off = errors * (1 + 0.1 * np.arange(sets))[:, None] * np.ones(2)
    none = np.zeros((sets, 2))
    tested = BackTest(
        pool="laws",
        networks=40,
        members=6,
        n=np.array([8.0, 16.0]),
        truth=np.ones(2),
        truth_se=np.zeros(2),
        errors={"paper": off},
        halves={"paper": none},
        at_bound={"paper": none[:, 0] > 0},
        odd=(),
        warnings=(),
    )
    return Told(**vars(found), tested=tested)


@dataclasses.dataclass(frozen=True, eq=False)
class Told(Evidence):
    """Evidence that was told how predictions from six came out."""

    tested: Any = None

    def from_six(self, k):
        return self.tested


def splits(true, predicted):
    """Evidence that remembers which splits were predicted."""
    true, predicted = np.array(true), np.array(predicted)
    made = OptimalSplits(
        "paper",
        np.arange(1.0, len(true) + 1),
        np.zeros(len(true), int),
        true,
        predicted,
        np.zeros(len(true)),
    )
    memory = {("optimal splits", "paper"): made}
    return remembering(evidence_of_plane(falling), memory=memory)


def real(pool_or_pools):
    pools = pool_or_pools if isinstance(pool_or_pools, list) else [pool_or_pools]
    return evidence_of(pools)


def sketched(networks=8):
    return Sketch.of(World(objects=300, size=1000).predictions(networks))


def scaled(factors, objects=600):
    """Networks that say the same, each with a confidence of its own."""
    one = World(objects=objects).predictions(1)
    logits = one.logits(0, 0, objects)
    return Predictions.of([f * logits for f in factors], one.targets)


def confident(factors, objects=1500, **options):
    """Pools of single networks along the size, each with its confidence."""
    family = Family.splits_pay(objects=objects, **options)
    pools = []
    for size, factor in zip(SIZES, factors, strict=False):
        pool = family.of(size).predictions(6)
        rows = [factor * pool.logits(i, 0, objects) for i in range(6)]
        pools.append(
            Predictions.of(rows, pool.targets, pool=Pool(f"s{size}", size=size))
        )
    return evidence_of(pools)


def regularized(gain_exponent, *, decay, name):
    return evidence_of_plane(
        lambda n, s: falling(n, s, gain_exponent=gain_exponent),
        recipe=f"sgd, weight_decay {decay}, dropout 0",
        name=name,
    )


def pair(without, regular, noise=None):
    found = (
        regularized(without, decay=0, name="unregularized"),
        regularized(regular, decay=0.001, name="regularized"),
    )
    return found[1:] if noise else found


NOISY = 0.1
CASES = {
    "cnll-n-law": (
        lambda: evidence_of_plane(power),
        lambda: evidence_of_plane(exponential),
        lambda: evidence_of_plane(power, networks=4),
    ),
    "cnll-n-exponent": (
        lambda: evidence_of_plane(power),
        lambda: evidence_of_plane(lambda n, _: 0.3 + 0.2 * n**-1.3),
        lambda: evidence_of_plane(power, noise=NOISY),
    ),
    "cnll-n-rivals": (
        lambda: evidence_of_plane(power),
        lambda: evidence_of_plane(exponential),
        lambda: evidence_of_plane(power, noise=NOISY),
    ),
    "cnll-n-rivals-ahead": (
        lambda: evidence_of_plane(power),
        lambda: evidence_of_plane(exponential),
        lambda: evidence_of_plane(power, networks=6),
    ),
    "gain-size": (
        lambda: evidence_of_plane(lambda n, s: falling(n, s, gain_exponent=-0.3)),
        lambda: evidence_of_plane(lambda n, s: falling(n, s, gain_exponent=0.3)),
        lambda: evidence_of_plane(falling, sizes=SIZES[:2]),
    ),
    "nll-n-law": (
        lambda: evidence_of_temperatures(flattening),
        lambda: evidence_of_temperatures(lawless),
        lambda: evidence_of_temperatures(flattening, networks=4),
    ),
    "exponent-temperature": (
        lambda: evidence_of_temperatures(flattening),
        lambda: evidence_of_temperatures(steepening),
        lambda: evidence_of_temperatures(flattening, noise=0.05),
    ),
    "gain-temperature": (
        lambda: evidence_of_temperatures(flattening),
        lambda: evidence_of_temperatures(steepening),
        lambda: evidence_of_temperatures(flattening, noise=0.05),
    ),
    "temperature-converges": (
        lambda: evidence_of_temperatures(SETTLING),
        lambda: evidence_of_temperatures(RUNNING),
        lambda: evidence_of_temperatures(best_at(lambda n, s: 5 + 0 * n * s)),
    ),
    "temperature-size": (
        lambda: evidence_of_temperatures(SETTLING),
        lambda: evidence_of_temperatures(SMALLER),
        lambda: evidence_of_temperatures(SETTLING, sizes=SIZES[:2]),
    ),
    "after-rises": (
        lambda: real(World(objects=500, luck=0).predictions(8)),
        lambda: real(World(objects=500, margin=1, noise=6).predictions(8)),
        lambda: real(sketched()),
    ),
    "le-nll-whole": (
        lambda: real(World(objects=4000, luck=0).predictions(8)),
        lambda: real(scaled([0.25, 0.5, 1, 2, 4, 0.3, 3, 1.5])),
        lambda: real(World(objects=500).predictions(3)),
    ),
    "le-nll-cross-validated": (
        lambda: real(World(objects=4000, luck=0).predictions(8)),
        lambda: real(scaled([0.25, 0.5, 1, 2, 4, 0.3, 3, 1.5])),
        lambda: real(World(objects=500).predictions(3)),
    ),
    "before-after": (
        lambda: comparisons(-0.001, 0.0001),
        lambda: comparisons(0.05, 0.001),
        lambda: comparisons(-0.001, 0.0001, ensembles=3),
    ),
    "before-better": (
        lambda: comparisons(-0.001, 0.0001),
        lambda: comparisons(0.001, 0.0001),
        lambda: real(World(objects=300).predictions(6)),
    ),
    "cnll-s-law": (
        lambda: evidence_of_plane(falling),
        lambda: evidence_of_plane(turning),
        lambda: evidence_of_plane(falling, sizes=SIZES[:3]),
    ),
    "cnll-s-exponent": (
        lambda: evidence_of_plane(falling),
        lambda: evidence_of_plane(steep),
        lambda: evidence_of_plane(turning),
    ),
    "nll-s-turns": (
        lambda: confident([1, 1, 1, 1.5, 2.5, 4]),
        lambda: confident([1, 1, 1], luck=0, noise=0.5),
        lambda: confident([1, 1.1, 1.2], luck=0.4),
    ),
    "cnll-s-ensembles-turn": (
        lambda: evidence_of_plane(turning),
        lambda: evidence_of_plane(falling),
        lambda: evidence_of_plane(turning, noise=NOISY),
    ),
    "cnll-b-law": (
        lambda: evidence_of_plane(falling),
        lambda: evidence_of_plane(stepped),
        lambda: evidence_of_plane(falling, noise=NOISY),
    ),
    "split-pays": (
        lambda: evidence_of_plane(falling),
        lambda: evidence_of_plane(lonely),
        lambda: evidence_of_plane(falling, noise=NOISY),
    ),
    "split-pays-below": (
        lambda: evidence_of_plane(lambda n, s: falling(n, s, gain_exponent=0.0)),
        lambda: evidence_of_plane(lonely),
        lambda: evidence_of_plane(falling, noise=NOISY),
    ),
    "accuracy-split": (
        lambda: evidence_of_plane(falling, accuracy=lambda n, s: 1 - lonely(n, s)),
        lambda: evidence_of_plane(lonely, accuracy=lambda n, s: 1 - falling(n, s)),
        lambda: evidence_of_plane(falling),
    ),
    "split-training-time": (
        lambda: evidence_of_plane(falling, seconds=lambda s: 5 + s / 1000),
        lambda: evidence_of_plane(falling, seconds=lambda _: 60),
        lambda: evidence_of_plane(falling),
    ),
    "split-prediction-time": (
        lambda: evidence_of_plane(falling, seconds=lambda s: 5 + s / 1000),
        lambda: evidence_of_plane(falling, seconds=lambda _: 60),
        lambda: evidence_of_plane(falling, sizes=SIZES[:4], seconds=lambda s: s),
    ),
    "forecast-all": (
        lambda: evidence_of_plane(power),
        lambda: evidence_of_plane(logarithmic, networks=64),
        lambda: evidence_of_plane(power, networks=8),
    ),
    "forecast-six": (
        lambda: foresight(0.02),
        lambda: foresight(0.4),
        lambda: real(World(objects=300).predictions(12)),
    ),
    "optimal-split-predicted": (
        lambda: splits([4] * 8, [4, 8, 2, 4, 4, 2, 4, 4]),
        lambda: splits([1] * 8, [4, 8, 8, 4, 4, 8, 1, 4]),
        lambda: splits([4, 4], [4, 16]),
    ),
    "unregularized-gain": (
        lambda: pair(-0.4, -0.1),
        lambda: pair(-0.1, -0.4),
        lambda: pair(-0.4, -0.1, noise=True),
    ),
}


def answer(name, evidence):
    return check_claims(evidence, only=[name]).answers[-1]


def test_every_claim_is_tried_on_what_speaks_for_it_against_it_and_neither():
    assert list(CASES) == list(CLAIMS)


@pytest.mark.parametrize(
    ("name", "verdict"), list(itertools.product(CASES, VERDICTS)), ids=str
)
def test_known_answers_are_found(name, verdict):
    found = answer(name, CASES[name][VERDICTS.index(verdict)]())
    assert found.verdict == verdict, found
    assert found.sentence
    assert "nan" not in found.sentence
    if not np.isnan(found.value):
        bounds = CLAIMS[name].bounds
        assert bounds.verdict(found.low, found.high) == verdict
        assert found.bounds == str(bounds)
        assert np.isnan(found.low) or found.low <= found.value <= found.high
    elif verdict != UNSAID:
        # Where a curve turns there is no law, and so no residual.
        assert (name, verdict) == ("cnll-s-law", FAILS)


def test_numbers_are_those_that_evidence_was_made_of():
    plane = evidence_of_plane(lambda n, s: falling(n, s, gain_exponent=-0.3))
    assert answer("cnll-n-exponent", plane).value == pytest.approx(-0.9, abs=1e-3)
    assert answer("gain-size", plane).value == pytest.approx(-0.3, abs=1e-3)
    alone = evidence_of_plane(lambda n, s: falling(n, s, gain_exponent=-0.5))
    assert answer("cnll-s-exponent", alone).value == pytest.approx(-0.5, abs=1e-3)
    settling = evidence_of_temperatures(SETTLING)
    # Steps of 0.2/n from one doubling to the next are halved.
    assert answer("temperature-converges", settling).value == pytest.approx(0.5, 1e-2)
    assert answer("temperature-size", settling).value == pytest.approx(0.1 / 3, 1e-2)
    pays = evidence_of_plane(lambda n, s: falling(n, s, gain_exponent=0.0))
    single = falling(1, SIZES[-1], gain_exponent=0.0)
    best = min(falling(2**k, s, gain_exponent=0.0) for k, s in enumerate(SIZES[::-1]))
    assert answer("split-pays", pays).value == pytest.approx(1 - best / single, 1e-3)
    # Four networks of a quarter take 4 (5 + s/4000) against 5 + s/1000.
    slower = evidence_of_plane(falling, seconds=lambda s: 5 + s / 1000)
    ratios = [(20 + s / 1000) / (5 + s / 1000) for s in SIZES[-3:]]
    value = answer("split-training-time", slower).value
    assert value == pytest.approx(np.exp(np.mean(np.log(ratios))))


def test_the_number_of_an_after_rise_is_the_change_of_nll():
    pool = World(objects=200).predictions(6)
    found = answer("after-rises", real(pool))
    pairs = ensize.draws.disjoint(6, 2)
    p = np.array([np.exp(pool.logits(i, 0, 200)) for i in range(6)])
    p /= p.sum(axis=2, keepdims=True)

    def nll(mean):
        tempered = mean ** (1 / 3)
        tempered /= tempered.sum(axis=1, keepdims=True)
        return -np.log(tempered[np.arange(200), pool.targets]).mean()

    rises = [
        nll(p[pair].mean(axis=0)) - np.mean([*map(nll, p[pair])]) for pair in pairs
    ]
    assert found.value == pytest.approx(np.mean(rises), abs=1e-6)
    assert found.low == pytest.approx(interval(rises).low, abs=1e-6)


def test_claims_of_worlds_come_out_as_their_laws_say():
    """From 12 real draws of a family where splits pay, and their laws are known."""
    family = Family.splits_pay(objects=1500)
    sizes = [25_000 * 2**i for i in range(5)]
    found = check_claims(
        evidence_of([family.of(size).predictions(12) for size in sizes], "pays")
    )
    said = {each.name: each for each in found.answers}
    assert {each.store for each in found.answers} == {"pays"}
    for name in (
        *("cnll-n-law", "cnll-n-exponent", "cnll-n-rivals", "nll-n-law"),
        *("gain-temperature", "temperature-converges", "after-rises"),
        *("split-pays", "split-pays-below", "forecast-six"),
    ):
        assert said[name].verdict == HOLDS, said[name]
    # Larger networks of this family err less, and are therefore less overconfident.
    exact = [float(family.of(size).best(10)[0]) for size in sizes]
    slope = np.polyfit(np.log(sizes), np.log(exact), 1)[0]
    assert said["temperature-size"].verdict == FAILS
    assert said["temperature-size"].low < slope < said["temperature-size"].high
    assert said["split-training-time"].verdict == UNSAID


def test_intervals_cover_nine_times_of_ten():
    """Of 100 pools; 0.9 has a standard error of 0.03, and the jackknife is cautious."""
    world = World(objects=300, luck=0.2)
    found = [
        answer("cnll-n-exponent", real(world.predictions(range(8 * i, 8 * i + 8))))
        for i in range(100)
    ]
    truth = np.nanmean([each.value for each in found])
    assert np.isfinite([each.value for each in found]).mean() > 0.9
    inside = np.mean([each.low <= truth <= each.high for each in found])
    assert 0.82 <= inside <= 0.99


def test_bounds_tell_what_an_interval_says():
    bounds = Bounds(-1.0, -0.5)
    assert bounds.verdict(-0.9, -0.6) == HOLDS
    assert bounds.verdict(-1.2, -1.1) == FAILS
    assert bounds.verdict(-0.4, 0.1) == FAILS
    assert bounds.verdict(-1.1, -0.9) == UNSAID
    assert bounds.verdict(np.nan, -0.6) == UNSAID
    assert Bounds(least=0.0).verdict(0.0, 0.0) == UNSAID  # nothing rises
    assert [str(b) for b in (bounds, Bounds(2.0), Bounds(most=0.1))] == [
        "from -1 to -0.5",
        "at least 2",
        "at most 0.1",
    ]


def test_the_jackknife_adds_the_variances_of_pools():
    rng = np.random.default_rng(0)
    pools = [rng.normal(size=(5, 3)), rng.normal(size=(9, 3))]
    rows = [
        np.array(
            [p.mean(axis=0), *(np.delete(p, i, 0).mean(axis=0) for i in range(len(p)))]
        )
        for p in pools
    ]

    def statistic(table):
        return table[:, 0, 0] * table[:, 1, 2] - table[:, 1, 1]

    values = [
        statistic(np.array([[a, b]]))[0]
        for a, b in itertools.chain(
            ((a, rows[1][0]) for a in rows[0][1:]),
            ((rows[0][0], b) for b in rows[1][1:]),
        )
    ]
    parts = [(5 - 1) * np.var(values[:5]), (9 - 1) * np.var(values[5:])]
    found = jackknife(statistic, rows)
    assert found.value == pytest.approx(
        statistic(np.array([[rows[0][0], rows[1][0]]]))[0]
    )
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 4 + parts[1] ** 2 / 8)
    from scipy.stats import t

    half = t.ppf(0.95, freedom) * np.sqrt(sum(parts))
    assert found.high - found.value == pytest.approx(half)
    assert found.value - found.low == pytest.approx(half)
    wider = jackknife(statistic, rows, chosen_of=10)
    assert wider.high - wider.value == pytest.approx(
        half * t.ppf(0.995, freedom) / t.ppf(0.95, freedom)
    )


def test_the_most_striking_is_the_surest():
    rising = [Estimate(2, -1, 5), Estimate(1, 0.5, 1.5)]
    assert most_striking(rising) == 1
    falling_all = [Estimate(-2, -3, -1), Estimate(-3, -6.5, -0.5)]
    assert most_striking(falling_all) == 1


def test_the_power_form_is_the_laws_robust_fit_without_a_prior():
    rng = np.random.default_rng(0)
    n = np.arange(1.0, 17)
    curves = 0.3 + 0.2 * n**-0.8 + 0.001 * rng.standard_normal((5, 16))
    found = fit_form(POWER, n, curves)
    for i, curve in enumerate(curves):
        law = fit(n, curve, prior=None)
        assert found.rate[i] == pytest.approx(-law.exponent, rel=1e-3)
        assert found.limit[i] == pytest.approx(law.limit, rel=1e-4)
        assert found(n)[i] == pytest.approx(law.law(n), rel=1e-5)


def test_rival_forms_find_their_own_curves():
    n = np.arange(1.0, 17)
    for form, shape in (
        (EXPONENTIAL, np.exp(-0.4 * (n - 1))),
        (LOGARITHMIC, -np.log(n)),
        (POWER, n**-0.7),
    ):
        curves = np.array([0.9 + 0.2 * shape, 2.0 + 0.1 * shape])
        found = fit_form(form, n, curves)
        assert found.objective == pytest.approx(0, abs=1e-8)
        np.testing.assert_allclose(found(n), curves, rtol=1e-7)
        assert found.gain == pytest.approx([0.2, 0.1], rel=1e-5)


def test_rival_forms_have_no_limit_below_0_and_no_rise():
    n = np.arange(1.0, 9)
    bent = fit_form(EXPONENTIAL, n, (1.0 - 0.12 * (n - 1))[None])
    assert bent.limit[0] >= 0
    rising = fit_form(POWER, n, (1.0 + 0.1 * n)[None])
    assert rising.gain[0] == 0


def test_every_claim_is_asked_of_every_store_and_comparisons_once():
    studies = pair(-0.4, -0.1)
    found = check_claims(studies, only=["unregularized-gain", "cnll-n-law"])
    assert [(each.name, each.store) for each in found.answers] == [
        ("cnll-n-law", "unregularized"),
        ("cnll-n-law", "regularized"),
        ("unregularized-gain", "unregularized, regularized"),
    ]
    assert found.counts() == {HOLDS: 3, FAILS: 0, UNSAID: 0}
    assert found.records()[0]["name"] == "cnll-n-law"
    assert found.table().splitlines()[0].split()[:2] == ["cnll-n-law", "holds"]


def test_unknown_claims_are_refused_with_the_names_that_there_are():
    pool = real(World(objects=100).predictions(3))
    with pytest.raises(InputError, match=r"cnll-n-law.*did you mean 'split-pays'"):
        check_claims(pool, only=["split-pay"])
    with pytest.raises(InputError, match="no claims"):
        check_claims(pool, only=[])


def poor_stores():
    one = World(objects=200)
    logits = one.predictions(1).logits(0, 0, 200)
    targets = one.predictions(1).targets
    perfect = 50 * np.eye(10)[targets]
    yield "one", one.predictions(1)
    yield "three", one.predictions(3)
    yield "the same", Predictions.of([logits] * 8, targets)
    yield "nothing known", Predictions.of([0 * logits] * 8, targets)
    yield "perfect", Predictions.of([perfect] * 8, targets)
    yield "all wrong", Predictions.of([np.roll(perfect, 1, axis=1)] * 8, targets)


@pytest.mark.parametrize(
    "pool", [pytest.param(pool, id=name) for name, pool in poor_stores()]
)
def test_poor_evidence_speaks_neither_for_nor_against_a_law(pool):
    found = check_claims(real(pool))
    assert len(found.answers) == len(CLAIMS)
    for each in found.answers:
        numbers = np.array([each.value, each.low, each.high])
        assert not np.isinf(numbers).any()
        if each.name.endswith(("law", "exponent", "rivals", "ahead", "rises")):
            assert each.verdict == UNSAID, each


def test_a_test_set_that_is_too_easy_says_nothing_of_cnll():
    rng = np.random.default_rng(0)
    targets = rng.integers(3, size=60)
    easy = [5 * np.eye(3)[targets] + rng.standard_normal((60, 3)) for _ in range(6)]
    for row in easy:
        row[0] = -row[0]  # one object is wrong, whose half alone has a temperature
    pool = Predictions.of(easy, targets, pool=Pool("easy"))
    curve = ensize.score(pool)
    assert curve.at_edge.max() > 0
    found = answer("cnll-n-law", real(pool))
    assert found.verdict == UNSAID
    assert "best temperature of some ensembles of n = 1" in found.sentence
    assert answer("nll-n-law", real(pool)).value > 0
    hard = ensize.score(World(objects=500).predictions(5))
    assert hard.at_edge.max() == 0


def test_points_have_less_of_the_luck_of_the_draw():
    """Of 2024 triples of networks 16 are drawn; the points know the others as well."""
    triples = np.array(list(itertools.combinations(range(24), 3)))
    drawn, freed = [], []
    for seed in range(4):
        pool = World(objects=200, seed=seed).predictions(24)
        logits = np.array([pool.logits(i, 0, 200) for i in range(24)], float) / 2
        p = np.exp(logits[:, np.arange(200), pool.targets])
        p /= np.exp(logits).sum(axis=2)
        exact = -np.log(p[triples].mean(axis=1)).mean()
        (points,) = along_temperature(real(pool))
        at = np.flatnonzero(points.profile.temperature == 2.0)[0]
        drawn.append(points.profile.nll[at, 2] - exact)
        freed.append(points.rows[0, at, 2] - exact)
    assert np.std(drawn) > 2 * np.sqrt(np.mean(np.square(freed)))


def test_small_ensembles_that_were_not_drawn_are_known_nearly():
    """Of 276 pairs 24 are drawn; the points come near to CNLL of all of them."""
    pairs = np.array(list(itertools.combinations(range(24), 2)))
    drawn, freed = [], []
    for seed in range(4):
        pool = World(objects=300, seed=seed).predictions(24)
        exact = score_ensembles(pool, shares_of(pairs, 24)).cnll.mean()
        (points,) = along_n(real(pool))
        drawn.append(ensize.score(pool, n=[2]).cnll[0] - exact)
        freed.append(points.rows[0, 1] - exact)
    assert np.std(drawn) > 2 * np.sqrt(np.mean(np.square(freed)))


def test_pools_of_unequal_lengths_sketches_and_unregularized_ones_are_asked():
    family = Family.splits_pay(objects=100)
    lengths = (14, 12, 8, 4, 1)
    pools = [family.of(s).predictions(k) for s, k in zip(SIZES, lengths, strict=False)]
    for given in (pools, [Sketch.of(pool) for pool in pools[:3]]):
        found = check_claims(evidence_of(given))
        verdicts = {each.name: each.verdict for each in found.answers}
        assert verdicts["cnll-n-law"] in VERDICTS
        assert UNSAID in verdicts.values()
    assert verdicts["accuracy-split"] == verdicts["after-rises"] == UNSAID


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store of three sizes with six networks each."""
    path = tmp_path_factory.mktemp("claims") / "small"
    opened, family = Store(path), Family.splits_pay(objects=200)
    for size in SIZES[:3]:
        pool = family.of(size).predictions(6)
        for i in range(6):
            opened.add(
                f"mlp-{size}", i, pool.logits(i, 0, 200), pool.targets, size=size
            )
    return path


def run(*arguments):
    done = CliRunner().invoke(app, ["claims", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout


def test_the_verb_prints_the_contracts_json(store):
    code, out = run(store, "--json")
    said = json.loads(out)
    assert code == 0
    assert "NaN" not in out
    assert [each["name"] for each in said["claims"]] == list(CLAIMS)
    for each in said["claims"]:
        assert each["verdict"] in VERDICTS
        assert each["store"] == "small"
        assert each["value"] is None or isinstance(each["value"], float)
        assert {"low", "high", "sentence", "section", "bounds", "claim"} <= set(each)
    assert said["warnings"] == []
    assert said["options"] == {"only": None, "level": 0.9, "stores": [str(store)]}
    assert run(store, "--json") == (code, out)


def test_the_verb_prints_a_page_for_people(store):
    code, out = run(store)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "small"
    assert max(map(len, lines)) <= 100
    for each in CLAIMS.values():
        assert any(each.name in line.split() for line in lines)
    assert "answers" in lines[-3]


def test_the_verb_asks_for_some(store):
    names = "cnll-n-law,split-pays"
    code, out = run(store, "--only", names, "--only", "forecast-six", "--json")
    said = json.loads(out)
    assert code == 0
    assert said["options"]["only"] == ["cnll-n-law", "split-pays", "forecast-six"]
    assert [each["name"] for each in said["claims"]] == said["options"]["only"]
    with pytest.raises(InputError, match="'law', which is not one of 'cnll-n-law'"):
        run(store, "--only", "law")


def test_the_page_of_the_docs_names_every_claim_with_its_bounds_and_section():
    text = " ".join(DOCS.read_text(encoding="utf-8").split())
    for each in CLAIMS.values():
        assert f"`{each.name}` | {each.says} | {each.bounds} |" in text, each.name
        assert each.ask.__doc__ is not None
        said = " ".join(each.ask.__doc__.split())
        sections = re.split("; (?:appendix )?|, timing", each.section)
        known = [part for part in sections if part.removeprefix("appendix ") in said]
        assert known or "timing analysis" in said, each.name
    assert text.count("| `") == len(CLAIMS)


def test_a_claim_of_ones_own_is_asked_like_the_others():
    code = re.search("```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)[1]
    try:
        exec(compile(code, DOCS, "exec"), {"__name__": "mine"})
        found = answer("limit-positive", evidence_of_plane(power))
    finally:
        CLAIMS.pop("limit-positive", None)
    assert found.verdict == HOLDS
    assert found.value == pytest.approx(0.3, abs=1e-4)
