import dataclasses
import doctest
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ensize import (
    InputError,
    MemorySplitSearch,
    Pool,
    Predictions,
    Store,
    forecast,
    score,
)
from ensize.draws import disjoint
from ensize.laws import fit
from ensize.synthetic import Family

# Hardly any luck, so that the best split of the networks is that of the world.
PAY = Family.splits_pay(objects=2000, luck=0.01)
PAY_MORE = Family.splits_pay(objects=10_000, luck=0.01)
WINS = Family.single_wins(objects=2000, luck=0.01)


def drive(search, family=PAY, seed=0):
    """Train what is asked for, until nothing is."""
    asked = []
    while wanted := search.ask():
        asked += [(wanted.size, each) for each in wanted.seeds]
        search.tell(wanted, family.of(wanted.size).predictions(wanted.seeds, seed=seed))
    assert len(asked) == len(set(asked))  # never for a network that it has
    return search


def search_of(budget, family=PAY, **options):
    return MemorySplitSearch(budget, smallest=family.smallest, **options)


def answer(search):
    """What a search says, to be compared."""
    return (
        json.dumps([str(each) for each in search.records()]),
        search.best.n,
        search.cost,
        search.verdict,
    )


@pytest.mark.parametrize("method", ["robust", "paper"])
@pytest.mark.parametrize("budget", [50_000, 200_000, 800_000, 3_200_000])
def test_the_optimum_is_found_from_asks_and_tells_alone(budget, method):
    """Where two splits are nearly as good, either is the optimum: 2 % of CNLL."""
    search = drive(search_of(budget, method=method), PAY_MORE)
    exact = PAY_MORE.splits(budget)
    known = dict(zip(exact.n.tolist(), exact.value, strict=True))
    assert known[search.best.n] <= 1.02 * exact.value.min()
    assert search.best.n > 1
    assert search.verdict.code == "split"
    # The value that is reported was measured, and is that of the world.
    assert search.best.settled
    assert search.best.value == pytest.approx(known[search.best.n], rel=0.02)
    # Exactly the steps up to the one that did not improve.
    assert [each.n for each in search.steps] == [2**i for i in range(len(search.steps))]
    assert [each.better for each in search.steps[:-1]] == [True] * (
        len(search.steps) - 1
    )
    assert not search.steps[-1].better


@pytest.mark.parametrize("budget", [50_000, 400_000, 3_200_000])
def test_where_no_split_is_worth_it_the_search_says_so(budget):
    assert WINS.splits(budget).best == 1
    search = drive(search_of(budget, WINS), WINS)
    assert search.best.n == 1
    assert search.verdict.code == "no split"
    assert [each.n for each in search.steps] == [1, 2]
    assert search.cost.networks_trained == 3


def test_the_papers_method_is_algorithm_1_to_the_letter():
    """Against the algorithm written out once more, line by line."""
    budget, least, n_best, k, found = 3_200_000, np.inf, None, -1, False
    pools, values = {}, []
    while not found:
        k += 1
        n = 2**k
        world = PAY.of(budget // n)
        networks = pools[n] = world.predictions(min(n, 6))
        if n > 4:
            points = []
            for i in (1, 2, 3, 4):
                groups = disjoint(6, i)
                runs = [score(networks.choose(each), n=[i]).cnll[0] for each in groups]
                points.append(np.mean(runs))
            value = float(fit([1, 2, 3, 4], points, method="paper").law(n))
        else:
            value = score(networks, n=[n]).cnll[0]
        values.append(value)
        if value < least:
            least, n_best = value, n
        else:
            found = True
    search = drive(search_of(budget, method="paper"))
    assert search.best.n == n_best
    np.testing.assert_allclose([each.cnll for each in search.steps], values, atol=2e-7)
    trained = sum(min(n, 6) for n in pools) + max(0, n_best - 6)
    assert search.cost.networks_trained == trained
    sizes = {n: budget // n for n in pools}
    parameters = sum(min(n, 6) * sizes[n] for n in pools)
    parameters += max(0, n_best - 6) * sizes[n_best]
    assert search.cost.parameters_trained == parameters
    assert search.cost.networks_full == sum(pools)
    assert search.cost.parameters_full == sum(n * sizes[n] for n in pools)


def test_no_more_than_six_of_a_size_are_trained_before_the_best_is_known():
    search = search_of(3_200_000)
    wanted = []
    while asked := search.ask():
        wanted.append((asked.n, len(asked.seeds), len(search.steps)))
        pool = PAY_MORE.of(asked.size).predictions(asked.seeds)
        search.tell(asked, pool)
    *before, last = wanted
    assert [count for _, count, _ in before] == [min(n, 6) for n, _, _ in before]
    assert last == (search.best.n, search.best.n - 6, len(before))
    assert search.best.source == "forecast"
    assert search.best.low < search.best.cnll < search.best.high
    assert search.best.low < search.best.measured < search.best.high


def test_patience_goes_on_where_luck_might_deceive():
    plain, patient = (drive(search_of(200_000, patience=p)) for p in (0, 1))
    assert patient.best.n == plain.best.n
    assert len(patient.steps) == len(plain.steps) + 1
    assert patient.steps[: len(plain.steps)] == pytest.approx(plain.steps)


def test_patience_finds_what_lies_behind_a_bump():
    """A family whose networks of one size are bad: the optimum is beyond them."""

    def told(wanted):
        world = PAY_MORE.of(wanted.size)
        if wanted.n == 2:
            world = dataclasses.replace(world, margin=world.margin - 1.5)
        return world.predictions(wanted.seeds)

    found = []
    for patience in (0, 1):
        search = search_of(800_000, patience=patience)
        while wanted := search.ask():
            search.tell(wanted, told(wanted))
        found.append(search.best.n)
    assert found[0] == 1
    assert found[1] == PAY_MORE.splits(800_000).best


def test_the_search_ends_at_the_smallest_network_of_the_family():
    search = drive(MemorySplitSearch(800_000, smallest=300_000))
    assert [each.n for each in search.steps] == [1, 2]
    assert search.best.n == 2
    assert any("smallest network allows" in each for each in search.warnings)
    alone = drive(MemorySplitSearch(800_000, smallest=500_000))
    assert alone.verdict.code == "no split"
    assert "half the budget" in alone.verdict.sentence


def test_resumed_at_any_step_it_gives_the_same_answer(tmp_path):
    whole = answer(drive(search_of(3_200_000, store=tmp_path / "whole")))
    assert whole == answer(drive(search_of(3_200_000)))  # and as in memory
    store = tmp_path / "parts"
    while wanted := search_of(3_200_000, store=store).ask():
        for one in wanted.each():
            again = search_of(3_200_000, store=store)  # another process
            again.tell(one, PAY.of(one.size).predictions(one.seeds))
    assert answer(search_of(3_200_000, store=store)) == whole
    assert Store(store).verify() == ()


class Killed(BaseException):
    """The process ends here."""


def test_killed_at_any_write_it_gives_the_same_answer(tmp_path, monkeypatch):
    """After each file that gets a name: of a network, or of the next record."""
    budget, options = 100_000, {"patience": 1}
    family = Family.splits_pay(objects=300, luck=0.01)
    whole = answer(drive(search_of(budget, **options), family))
    # Nobody pulls the plug: the disk may take its time.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    link, left = os.link, 0

    def fatal(source, target, **more):
        nonlocal left
        left -= 1
        link(source, target, **more)
        if left == 0:
            raise Killed

    for kill in range(1, 100):
        store, left = tmp_path / str(kill), kill
        monkeypatch.setattr(os, "link", fatal)
        try:
            drive(search_of(budget, store=store, **options), family)
        except Killed:
            monkeypatch.setattr(os, "link", link)
            found = drive(search_of(budget, store=store, **options), family)
            assert answer(found) == whole
        else:
            assert kill > 25  # it came to its end before
            return


def test_what_a_store_has_is_not_asked_for(tmp_path):
    store = Store(tmp_path)
    pool = PAY.of(400_000).predictions(3)
    for seed in range(3):
        known = {"size": 400_000, "family": None}
        store.add("size-400000", seed, pool.rows[seed], pool.targets, **known)
    search = search_of(400_000, store=store)
    asked = []
    while wanted := search.ask():
        asked.append(wanted)
        search.tell(wanted, PAY.of(wanted.size).predictions(wanted.seeds))
    assert {wanted.n for wanted in asked}.isdisjoint({1})
    # All three tell what a network of this size is worth; only one was needed.
    assert search.steps[0].networks == 3
    assert search.steps[0].cnll == pytest.approx(score(pool, n=[1]).cnll[0], abs=1e-9)
    assert search.steps[0].low < search.steps[0].cnll < search.steps[0].high
    assert search.cost.networks_found == 1
    # The paper's method takes as many as it says, and not more.
    paper = drive(search_of(400_000, store=store, method="paper"))
    assert paper.steps[0].networks == 1


def test_networks_that_a_trainer_puts_into_the_store_need_no_telling(tmp_path):
    search = search_of(200_000, store=tmp_path)
    while wanted := search.ask():
        pool = PAY.of(wanted.size).predictions(wanted.seeds)
        for seed, logits in zip(wanted.seeds, pool.rows, strict=True):
            search_store = Store(tmp_path)
            search_store.add(
                wanted.pool.name, seed, logits, pool.targets, size=wanted.pool.size
            )
    assert answer(search) == answer(drive(search_of(200_000)))


def test_lost_networks_are_replaced_by_others():
    search = search_of(200_000)
    lost = 0
    asked = []
    while wanted := search.ask():
        first, *rest = wanted.each()
        asked += [(wanted.n, seed) for seed in wanted.seeds]
        if wanted.n == 4 and not lost:
            lost += 1
            search.lose(first)
        else:
            rest = [first, *rest]
        for one in rest:
            search.tell(one, PAY.of(one.size).predictions(one.seeds))
    assert (4, 0) in asked
    assert (4, 4) in asked
    assert [each.networks for each in search.steps[:3]] == [1, 2, 4]


def test_a_size_that_does_not_train_is_left_out():
    search = search_of(400_000)
    while wanted := search.ask():
        if wanted.n == 1:
            search.lose(wanted)
        else:
            search.tell(wanted, PAY.of(wanted.size).predictions(wanted.seeds))
    assert search.steps[0].source == "not trained"
    assert np.isnan(search.steps[0].cnll)
    assert search.best.n > 1
    assert "none of which would train" in search.verdict.sentence
    assert "size-400000" in search.warnings[0]
    hopeless = MemorySplitSearch(20_000, smallest=10_000)
    while wanted := hopeless.ask():
        hopeless.lose(wanted)
    assert hopeless.best is None
    assert hopeless.verdict.code == "cannot be said"


def test_networks_that_did_not_learn_are_replaced():
    """The odd ones out: all their logits are 0."""

    def told(wanted):
        pool = PAY.of(wanted.size).predictions(wanted.seeds)
        rows = [
            0 * row if (wanted.n, seed) == (4, 1) else row
            for row, seed in zip(pool.rows, wanted.seeds, strict=True)
        ]
        return Predictions.of(rows, pool.targets)

    seeds = []
    search = search_of(200_000)
    while wanted := search.ask():
        seeds += wanted.seeds if wanted.n == 4 else ()
        search.tell(wanted, told(wanted))
    assert seeds == [0, 1, 2, 3, 4]
    kept = search_of(200_000, keep_odd=True)
    while wanted := kept.ask():
        kept.tell(wanted, told(wanted))
    assert kept.steps[2].cnll > search.steps[2].cnll + 0.02


def test_a_forecast_that_was_too_good_is_found_out():
    """The networks trained last are worse than the six: another split is better."""
    search = search_of(3_200_000, keep_odd=True)
    while wanted := search.ask():
        world = PAY_MORE.of(wanted.size)
        if min(wanted.seeds) >= 6:
            world = dataclasses.replace(world, margin=world.margin - 2.5)
        search.tell(wanted, world.predictions(wanted.seeds))
    doubted = next(each for each in search.steps if not np.isnan(each.measured))
    assert doubted.measured > doubted.cnll + 0.01
    assert search.best is not doubted
    assert search.best.settled
    assert search.verdict.code == "split"


def test_a_family_names_its_own_pools():
    sizes = [20_000, 90_000, 190_000, 390_000]

    def pool_at(size):
        least = max(each for each in sizes if each <= size)
        return Pool(f"w{least}", family="few", size=least)

    search = MemorySplitSearch(400_000, smallest=20_000, pool_at=pool_at)
    while wanted := search.ask():
        search.tell(wanted, PAY.of(wanted.pool.size).predictions(wanted.seeds))
    assert [each.size for each in search.steps[:3]] == [390_000, 190_000, 90_000]
    assert search.cost.parameters_full == sum(s.n * s.size for s in search.steps)
    too_large = MemorySplitSearch(400_000, pool_at=lambda _: Pool("w", size=500_000))
    with pytest.raises(InputError, match="not a larger one"):
        too_large.ask()


def test_the_steps_are_a_table_for_reading():
    search = drive(search_of(3_200_000))
    head, *rows = search.table().splitlines()
    assert head.split()[:5] == ["n", "pool", "size", "networks", "cnll"]
    assert len(rows) == len(search.steps)
    assert sum("the best" in row for row in rows) == 1
    assert "nan" not in search.table()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"budget": "15.3Q"}, r"15\.3Q.*15\.3M"),
        ({"budget": 5_000}, "budget is 5000, but the smallest network has 10,000"),
        ({"method": "best"}, "method is 'best'"),
        ({"patience": -1}, "patience is -1"),
        ({"apply": "never"}, "apply is 'never'"),
        ({"smallest": 0}, "smallest is 0"),
    ],
)
def test_what_cannot_be_searched_is_refused(options, sentence):
    given = {"budget": 400_000, "smallest": 10_000} | options
    with pytest.raises(InputError, match=sentence):
        MemorySplitSearch(given.pop("budget"), **given)


def test_what_cannot_be_told_is_refused():
    search = search_of(400_000)
    wanted = search.ask()
    pool = PAY.of(wanted.size).predictions(2)
    with pytest.raises(InputError, match="1 networks were wanted, and 2"):
        search.tell(wanted, pool)
    with pytest.raises(InputError, match="without targets"):
        search.tell(wanted, [pool.rows[0]])
    search.tell(wanted, [pool.rows[0]], pool.targets)
    other = dataclasses.replace(PAY.of(200_000), seed=9).predictions(2)
    with pytest.raises(InputError, match="other targets"):
        search.tell(search.ask(), other)


def test_a_damaged_record_is_named(tmp_path):
    drive(search_of(200_000, store=tmp_path))
    (path,) = tmp_path.glob("searches/*.json")
    for text in ("", "[]", "{}", path.read_text().replace('"cnll": 0', '"cnll": "0"')):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=f"{path.name} is not as it was written"):
            search_of(200_000, store=tmp_path)
    path.unlink()
    # Its networks are there still, so that it need not ask.
    assert search_of(200_000, store=tmp_path).ask() is None


def test_forecasts_are_those_of_the_forecast():
    search = drive(search_of(3_200_000))
    step = next(each for each in search.steps if each.source == "forecast")
    six = PAY.of(3_200_000 // step.n).predictions(6)
    ahead = forecast(six, to=[step.n])
    assert step.cnll == pytest.approx(ahead.cnll[0], rel=1e-6)
    assert (step.low, step.high) == pytest.approx(
        (ahead.low[0], ahead.high[0]), rel=1e-6
    )


def test_the_page_on_splits_runs():
    page = Path(__file__).parent.parent / "docs" / "splits.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 15
    assert result.failed == 0


def test_the_example_finds_the_worlds_best_split(tmp_path):
    example = Path(__file__).parent.parent / "examples" / "ask_and_tell.py"
    for _ in range(2):  # the second time all is there
        done = subprocess.run(
            [sys.executable, example, tmp_path],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "a split is worth it: 8 networks of 375,000" in done.stdout
        assert done.stdout.endswith("The world's best split: n = 8\n")
    assert "n = 1: " not in done.stdout
