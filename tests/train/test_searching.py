"""Searches that train, with a trainer that takes no time."""

import itertools

import pytest

from ensize import InputError, Store
from ensize.train.networks import parameters, width_for
from ensize.train.searching import search_study
from ensize.train.studies import Study, train_study
from fake_training import Trainer, few_objects, install

DECLARED = {
    "name": "few",
    "dataset": "digits",
    "family": "mlp",
    "widths": [4, 8],
    "networks": [6, 3],
    "recipe": {"epochs": 2, "learning_rate": 0.1, "weight_decay": 0.0},
}
STUDY = Study.of(DECLARED)
DATA = few_objects(300)
# Networks of a rate with which they do not learn too well.
LEARNING = {"best_rate": 0.01}
SHAPE = {"shape": DATA.shape, "classes": DATA.classes}
# One network of the width 16; its splits go down to the width 1.
BUDGET = parameters("mlp", 16, **SHAPE)


@pytest.fixture
def trainer(monkeypatch):
    return install(monkeypatch, Trainer(**LEARNING), DATA)


def steps(found):
    return [
        (step.n, step.pool, step.networks, step.cnll) for step in found.search.steps
    ]


def test_a_search_trains_what_it_asks_for_and_names_it_as_the_study_does(
    trainer, tmp_path
):
    told = []
    found = search_study(STUDY, tmp_path, BUDGET, patience=2, told=told.append)
    search, store = found.search, Store(tmp_path)
    assert search.done
    assert [step.n for step in told] == [step.n for step in search.steps]
    for step in search.steps:
        width = width_for("mlp", BUDGET // step.n, **SHAPE)
        assert step.pool == STUDY.pool(width)
        assert step.size == parameters("mlp", width, **SHAPE)
        assert step.n * step.size <= BUDGET
    seeds = {step.pool: store.seeds(step.pool) for step in search.steps}
    assert all(each == tuple(range(len(each))) for each in seeds.values())
    assert search.cost.networks_trained == sum(map(len, seeds.values()))
    asked = [(w, s) for w, seeds, _ in trainer.asked for s in seeds]
    assert len(asked) == len(set(asked)) == search.cost.networks_trained
    # The second time all is there.
    before = len(trainer.asked)
    again = search_study(STUDY, tmp_path, BUDGET, patience=2)
    assert steps(again) == steps(found)
    assert len(trainer.asked) == before


def test_a_study_and_a_search_share_a_store(trainer, tmp_path):
    """Networks do not depend on who has them trained."""
    budget = parameters("mlp", 8, **SHAPE)
    alone = search_study(STUDY, tmp_path / "alone", budget, method="paper")
    shared = tmp_path / "shared"
    train_study(STUDY, shared)
    found = search_study(STUDY, shared, budget, method="paper")
    assert steps(found) == steps(alone)
    assert found.search.cost.networks_found >= 1
    assert train_study(STUDY, shared).trained == 0
    total = found.search.cost.networks_trained + found.search.cost.networks_found
    assert total == alone.search.cost.networks_trained


def test_stopped_after_any_network_a_search_goes_on_from_there(
    trainer, tmp_path, monkeypatch
):
    whole = search_study(STUDY, tmp_path / "whole", BUDGET, patience=4)
    clock = itertools.count()
    # Every look at the clock takes a minute.
    monkeypatch.setattr(
        "ensize.train.searching.time.monotonic", lambda: 60.0 * next(clock)
    )
    sittings = 1
    options = {"patience": 4, "minutes": 2}
    while (part := search_study(STUDY, tmp_path / "parts", BUDGET, **options)).stopped:
        assert part.stopped == "time"
        sittings += 1
    assert sittings > 3
    assert steps(part) == steps(whole)
    assert part.search.cost == whole.search.cost


def test_networks_that_fail_are_replaced_and_named(monkeypatch, tmp_path):
    install(
        monkeypatch, Trainer(diverges=lambda width, seed: seed == 1, **LEARNING), DATA
    )
    found = search_study(STUDY, tmp_path, BUDGET)
    assert found.search.done
    assert Store(tmp_path).seeds(found.search.steps[1].pool)[:2] == (0, 2)
    assert any("/1 is left out" in each for each in found.warnings)


def test_a_width_that_never_trains_is_left_out(monkeypatch, tmp_path):
    install(
        monkeypatch, Trainer(diverges=lambda width, seed: width == 16, **LEARNING), DATA
    )
    found = search_study(STUDY, tmp_path, BUDGET)
    assert found.search.steps[0].source == "not trained"
    assert found.search.best.n > 1


def test_memory_that_does_not_suffice_ends_the_search_for_now(monkeypatch, tmp_path):
    def raises(width, seeds):
        return MemoryError("too large") if width == 16 else None

    install(monkeypatch, Trainer(raises=raises, **LEARNING), DATA)
    found = search_study(STUDY, tmp_path, BUDGET)
    assert found.given_up == 1
    assert not found.search.done
    assert any("too large" in each for each in found.warnings)
    install(monkeypatch, Trainer(**LEARNING), DATA)
    assert search_study(STUDY, tmp_path, BUDGET).search.done


def test_the_store_of_another_study_is_refused(trainer, tmp_path):
    train_study(STUDY, tmp_path)
    other = Study.of({**DECLARED, "name": "other"})
    with pytest.raises(InputError, match="is the store of another study"):
        search_study(other, tmp_path, BUDGET)
    with pytest.raises(InputError, match="the smallest network has"):
        search_study(STUDY, tmp_path, 3)
