import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ensize import InputError, Store
from ensize.train.loop import Interrupted, Recipe
from ensize.train.studies import Study, costs, train_networks, train_study
from ensize.train.tuning import Tuning, tune
from ensize.train.unfinished import checkpoint_of, checkpoints_in, nameable
from fake_training import Trainer, few_objects, install

GRID = Tuning((0.01, 0.05, 0.25), (0.0, 1e-3), epochs=3, networks=2, objects=10)
RECIPE = Recipe(5, 0.01, 0.0)
DECLARED = {
    "name": "few",
    "dataset": "digits",
    "family": "mlp",
    "widths": [4, 8],
    "networks": 3,
    "recipe": {"epochs": 5},
    "width": {"8": {"weight_decay": 1e-3}},
    "tuning": {
        "learning_rate": [0.01, 0.05, 0.25],
        "weight_decay": [0.0, 1e-3],
        "epochs": 3,
        "networks": 2,
        "objects": 10,
    },
}


@pytest.fixture
def trainer(monkeypatch):
    """A network is by far the best with a rate of 0.05."""
    trainer = install(monkeypatch, Trainer())
    step = trainer._step
    monkeypatch.setattr(
        trainer,
        "_step",
        lambda study, width, seed, recipe, epoch, data: (
            step(study, width, seed, recipe, epoch, data)
            + 9 * (recipe.learning_rate == 0.05) * np.eye(data.classes)[data.y_test]
        ),
    )
    return trainer


def search(folder, grid=GRID, **how):
    how = {"together": 5, "study": "few", **how}
    return tune(few_objects(), "mlp", 4, RECIPE, grid, folder=folder, **how)


def test_the_best_setting_on_the_validation_subset_is_chosen(tmp_path, trainer):
    found = search(tmp_path / "tuning")
    assert found["chosen"]["learning_rate"] == 0.05
    assert set(found["chosen"]) == {"learning_rate", "weight_decay", "dropout"}
    assert found["validation_objects"] == 10
    assert (found["epochs"], found["by"]) == (3, "cnll")
    best = min(found["settings"], key=lambda each: each["cnll"])
    assert {key: best[key] for key in found["chosen"]} == found["chosen"]


def test_the_whole_grid_is_kept(tmp_path, trainer):
    found = search(tmp_path / "tuning")
    assert len(found["settings"]) == 6
    for setting in found["settings"]:
        networks = setting["networks"]
        assert [each["seed"] for each in networks] == [0, 1]
        for key in ("cnll", "accuracy"):
            mean = np.mean([each[key] for each in networks])
            assert setting[key] == pytest.approx(mean)
    trained = [seed for _, seeds, _ in trainer.asked for seed in seeds]
    assert sorted(trained) == [0] * 6 + [1] * 6
    assert [len(seeds) for _, seeds, _ in trainer.asked] == [5, 5, 2]


def test_accuracy_may_decide(tmp_path, trainer):
    grid = Tuning((0.01, 0.05), (0.0,), objects=20, by="accuracy")
    assert search(tmp_path / "tuning", grid)["chosen"]["learning_rate"] == 0.05


def test_a_tenth_is_held_out_where_nothing_is_said(tmp_path, trainer):
    found = search(tmp_path / "tuning", Tuning((0.05,), (0.0,)))
    assert found["validation_objects"] == 4
    assert found["epochs"] == RECIPE.epochs


def test_a_setting_that_diverges_is_not_chosen(tmp_path, trainer):
    trainer.diverges = lambda _, seed: seed == 1
    grid = Tuning((0.01, 0.05), (0.0,), networks=1, objects=10)
    assert search(tmp_path / "one", grid)["chosen"]["learning_rate"] == 0.05
    with pytest.raises(InputError, match="no setting of the grid trains a mlp of wid"):
        search(tmp_path / "two")
    trainer.diverges = lambda *_: True
    with pytest.raises(InputError, match="its loss is not finite"):
        search(tmp_path / "three", grid)


def test_an_interrupted_search_goes_on(tmp_path, trainer):
    folder, looks = tmp_path / "tuning", iter(range(5))
    with pytest.raises(Interrupted):
        search(folder, stop=lambda: next(looks, None) is None)
    ((begun, _),) = checkpoints_in(folder)
    assert begun == [5, 6, 7, 8, 9]
    trainer.asked.clear()
    found = search(folder)
    assert [(len(seeds), epoch) for _, seeds, epoch in trainer.asked] == [
        (5, 2),
        (2, 0),
    ]
    again = search(tmp_path / "other")
    assert found["settings"] == again["settings"]


def test_a_damaged_score_is_named(tmp_path, trainer):
    (tmp_path / "0-4.json").write_text("{")
    with pytest.raises(InputError, match=r"0-4\.json is not as it was written"):
        search(tmp_path)


def test_a_study_tunes_each_width_and_trains_with_what_it_chose(tmp_path, trainer):
    study = Study.of(DECLARED)
    result = train_study(study, tmp_path)
    assert (result.done, result.trained) == (6, 6)
    kept = json.loads((tmp_path / "tuning" / "mlp-w4.json").read_text())
    assert len(kept["settings"]) == 6
    assert kept["chosen"]["learning_rate"] == 0.05
    eight = json.loads((tmp_path / "tuning" / "mlp-w8.json").read_text())
    assert len(eight["settings"]) == 3
    assert {each["weight_decay"] for each in eight["settings"]} == {1e-3}
    for pool in ("mlp-w4", "mlp-w8"):
        recipe = Store(tmp_path).metadata(pool, 0)["recipe"]
        assert "learning_rate 0.05" in recipe
    assert not (tmp_path / "unfinished").exists()
    trainer.asked.clear()
    train_study(Study.of({**DECLARED, "networks": 4}), tmp_path)
    assert trainer.asked == [(4, [3], 0), (8, [3], 0)]


def test_a_width_with_one_setting_is_not_searched(tmp_path, trainer):
    one = {"learning_rate": [0.05], "weight_decay": [0.0]}
    train_study(Study.of({**DECLARED, "tuning": one}), tmp_path)
    assert [(len(seeds), epoch) for _, seeds, epoch in trainer.asked] == [(3, 0)] * 2
    assert not (tmp_path / "tuning").exists()


def test_a_width_outside_the_study_is_tuned_as_well(tmp_path, trainer):
    train_networks(Study.of(DECLARED), tmp_path, 5, [0])
    assert (tmp_path / "tuning" / "mlp-w5.json").exists()


def test_a_search_in_another_process_is_waited_for(tmp_path, trainer, monkeypatch):
    monkeypatch.setattr("ensize.train.studies.tasks._WAIT", 0.01)
    trainer.seconds = 0.01
    with ThreadPoolExecutor(2) as executor:
        result = train_study(Study.of(DECLARED), tmp_path, executor=executor)
    assert result.done == 6
    asked = [(width, tuple(seeds)) for width, seeds, _ in trainer.asked]
    tuned = [(width, seeds) for width, seeds in asked if len(set(seeds)) < len(seeds)]
    assert sum(len(seeds) for width, seeds in tuned if width == 4) <= 12


def test_the_cost_of_tuning_is_told(tmp_path, trainer):
    four, eight = costs(Study.of(DECLARED), tmp_path)
    assert (four.trials, eight.trials) == (12, 6)
    # Steps of 0.001 s; 5 epochs of networks, 3 of trials, four at once.
    assert four.together == 4
    assert four.seconds == pytest.approx(0.001 * (5 + 3 * 3))
    train_study(Study.of(DECLARED), tmp_path)
    assert [each.trials for each in costs(Study.of(DECLARED), tmp_path)] == [0, 0]


def test_the_name_of_a_checkpoint_lists_its_networks(tmp_path):
    for numbers in ([0], [0, 1, 2], [3, 5, 6, 9], [10**6, 10**6 + 1]):
        path = checkpoint_of(tmp_path, numbers)
        path.touch()
        assert checkpoints_in(tmp_path) == [(numbers, path)]
        path.unlink()
    (tmp_path / "0.checkpoint.partial").touch()
    (tmp_path / "x.checkpoint").touch()
    assert checkpoints_in(tmp_path) == []
    assert nameable([]) == []
    many = nameable(range(0, 400, 2))
    assert many == list(range(0, 2 * len(many), 2))
    assert 30 < len(many) < 100
    assert nameable(range(500)) == list(range(500))
