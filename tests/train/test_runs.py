import dataclasses
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

from ensize import InputError, Store
from ensize.train.studies import Run, Study, missing
from ensize.train.studies.runs import (
    MOST,
    begin,
    check_study,
    chosen,
    keep_chosen,
    lacking,
    left_out,
    record_failure,
    wanted,
)

DECLARED = {
    "name": "few",
    "dataset": "digits",
    "family": "mlp",
    "widths": [4, 8],
    "networks": [5, 3],
    "recipe": {"epochs": 3, "learning_rate": 0.1, "weight_decay": 0.0},
}
STUDY = Study.of(DECLARED)


def add(store, pool, *seeds):
    for seed in seeds:
        store.add(pool, seed, 3 * np.eye(3), [0, 1, 2])


def test_what_is_missing_is_what_the_store_does_not_have(tmp_path):
    store = Store(tmp_path)
    add(store, "mlp-w4", 0, 3)
    add(store, "mlp-w8", 0, 1, 2)
    assert missing(STUDY, store) == [Run("mlp-w4", 4, each) for each in (1, 2, 4)]
    assert lacking(STUDY, store, wanted(STUDY)) == {4: [1, 2, 4]}


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20])
def test_parts_have_each_network_once(parts):
    found = []
    for k in range(1, parts + 1):
        part = wanted(STUDY, f"{k}/{parts}")
        assert part == wanted(STUDY, (k, parts))
        found += [(width, seed) for width, seeds in part.items() for seed in seeds]
    everything = [(4, s) for s in range(5)] + [(8, s) for s in range(3)]
    assert sorted(found) == everything


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "1/0", "-1/2", "a/b", (2, 1), "½"])
def test_a_part_that_is_none_gets_a_sentence(part):
    with pytest.raises(InputError, match="give K/N with K from 1 to N"):
        wanted(STUDY, part)


def test_a_failed_network_is_tried_again_under_another_seed_and_then_left_out(tmp_path):
    store, runs = Store(tmp_path), {4: [0, 1, 2]}
    record_failure(store, "mlp-w4", 1, "its loss is not finite")
    assert lacking(STUDY, store, runs) == {4: [0, MOST + 1, 2]}
    assert lacking(STUDY, store, runs, retry=False) == {4: [0, 2]}
    assert left_out(STUDY, store, runs) == []
    (failure,) = left_out(STUDY, store, runs, retry=False)
    assert (failure.pool, failure.seed) == ("mlp-w4", 1)
    record_failure(store, "mlp-w4", MOST + 1, "again")
    assert lacking(STUDY, store, runs) == {4: [0, 2]}
    (failure,) = left_out(STUDY, store, runs)
    assert (failure.seed, failure.reason) == (MOST + 1, "again")


def test_a_failure_that_cannot_be_read_is_still_one(tmp_path):
    store = Store(tmp_path)
    for seed in (0, MOST):
        record_failure(store, "mlp-w4", seed, "…")
    (tmp_path / "failures" / "mlp-w4" / f"{MOST}.json").write_text("{")
    (failure,) = left_out(STUDY, store, {4: [0]})
    assert "cannot be read" in failure.reason


def test_the_replacement_counts_as_the_network(tmp_path):
    store = Store(tmp_path)
    record_failure(store, "mlp-w4", 0, "…")
    add(store, "mlp-w4", MOST)
    assert lacking(STUDY, store, {4: [0]}) == {}
    assert left_out(STUDY, store, {4: [0]}) == []


def test_a_store_knows_its_study_and_lets_it_grow(tmp_path):
    store = Store(tmp_path)
    begin(STUDY, store)
    assert Study.read(tmp_path) == STUDY
    more = dataclasses.replace(STUDY, widths=(4, 8, 16), networks=(9, 3, 2))
    begin(more, store)
    assert Study.read(tmp_path) == more
    begin(more, store)
    assert [each.name for each in tmp_path.iterdir()] == ["study.toml"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": "many"}, "its name is 'few', and here 'many'"),
        ({"family": "vgg16"}, "its family is 'mlp'"),
        ({"dataset": "cifar10"}, "its dataset is 'digits'"),
        (
            {"recipe": {**DECLARED["recipe"], "epochs": 4}},
            "its epochs at width 4 is 3, and here 4",
        ),
        (
            {"width": {"8": {"dropout": 0.5}}},
            "its dropout at width 8 is 0.0, and here 0.5",
        ),
        (
            {"tuning": {"learning_rate": [0.1], "weight_decay": [0.0]}},
            "its tuning is None",
        ),
    ],
)
def test_the_store_of_another_study_is_refused(tmp_path, change, sentence):
    store = Store(tmp_path)
    begin(STUDY, store)
    other = Study.of({**DECLARED, **change})
    with pytest.raises(InputError, match=sentence):
        begin(other, store)
    with pytest.raises(InputError, match="use another store"):
        check_study(other, store)
    assert Study.read(tmp_path) == STUDY


def test_a_data_set_may_move_to_another_folder(tmp_path):
    store = Store(tmp_path / "store")
    here, there = (
        Study.of({**DECLARED, "dataset": "x.npz"}, folder=tmp_path / each)
        for each in ("a", "b")
    )
    begin(here, store)
    begin(there, store)
    assert Study.read(store.path).dataset == there.dataset


def test_chosen_values_are_kept(tmp_path):
    store, values = Store(tmp_path), {"learning_rate": 0.1, "weight_decay": 0.0}
    assert chosen(store, "mlp-w4") is None
    keep_chosen(store, "mlp-w4", {"chosen": values, "settings": []})
    assert chosen(store, "mlp-w4") == values
    path = tmp_path / "tuning" / "mlp-w4.json"
    assert json.loads(path.read_text())["settings"] == []
    for text in ("{", "[]", '{"chosen": 1}', '{"chosen": {"dropout": "a"}}'):
        path.write_text(text)
        with pytest.raises(InputError, match=r"delete it, and the study tunes again"):
            chosen(store, "mlp-w4")


def test_what_lacks_of_many_networks_is_known_at_once(tmp_path):
    """It is asked for with every committee."""
    seeds = tuple(range(0, 100_000, 2))
    store = SimpleNamespace(path=tmp_path, seeds=lambda _: seeds)
    began = time.process_time()
    left = lacking(STUDY, store, {4: range(100_000)})
    assert left == {4: list(range(1, 100_000, 2))}
    assert time.process_time() - began < 2  # a minute, where each is looked for in all
