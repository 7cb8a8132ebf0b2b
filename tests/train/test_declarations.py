import copy
import tomllib
from pathlib import Path

import pytest

from ensize import InputError
from ensize.train.loop import Recipe
from ensize.train.studies import PRESETS, Study, study_of
from ensize.train.tuning import Tuning

SHIPPED = sorted((Path(__file__).parents[2] / "studies").glob("*/study.toml"))
DECLARED = {
    "name": "few",
    "dataset": "digits",
    "family": "mlp",
    "widths": [4, 8, 32],
    "networks": [6, 4, 2],
    "keep": "float16",
    "recipe": {"epochs": 3, "learning_rate": 0.1, "weight_decay": 1e-4},
    "width": {"8": {"dropout": 0.25, "learning_rate": 0.05}},
}
TUNED = {
    **DECLARED,
    "recipe": {"epochs": 3},
    "tuning": {"learning_rate": [0.1, 0.2], "weight_decay": [0.0], "epochs": 2},
}


def changed(base, path, value):
    """Change, add or (with ...) remove one entry of a declaration."""
    declared = copy.deepcopy(base)
    *folders, key = path.split("/")
    table = declared
    for folder in folders:
        table = table[folder]
    if value is ...:
        del table[key]
    else:
        table[key] = value
    return declared


def test_a_study_says_how_each_width_is_trained():
    study = Study.of(DECLARED)
    assert study.recipe == Recipe(3, 0.1, 1e-4)
    assert study.recipe_at(4) == study.recipe
    assert study.recipe_at(8) == Recipe(3, 0.05, 1e-4, dropout=0.25)
    assert [study.seeds(width) for width in (4, 8, 32)] == [
        range(6),
        range(4),
        range(2),
    ]
    assert study.pool(8) == "mlp-w8"
    assert study.keep == "float16"
    assert study.grid_at(8) is None


def test_one_number_of_networks_stands_for_all_widths():
    assert Study.of({**DECLARED, "networks": 5}).networks == (5, 5, 5)


def test_a_width_that_is_not_listed_is_trained_as_its_nearest_one():
    study = Study.of(DECLARED)
    assert study.recipe_at(11) == study.recipe_at(8)
    assert study.recipe_at(17) == study.recipe_at(32)  # by ratio: 16 is between
    assert study.recipe_at(5) == study.recipe_at(4)


def test_what_is_stated_for_a_width_is_not_tuned():
    study = Study.of(TUNED)
    assert study.tuning == Tuning((0.1, 0.2), (0.0,), epochs=2)
    assert study.grid_at(4) == study.tuning
    grid = study.grid_at(8)
    assert (grid.learning_rate, grid.weight_decay) == ((0.05,), (0.0,))
    assert grid.dropout == (0.25,)
    chosen = {"learning_rate": 0.2, "weight_decay": 0.0, "dropout": 0.0}
    assert study.recipe_at(4, chosen) == Recipe(3, 0.2, 0.0)
    assert study.recipe_at(8, chosen) == Recipe(3, 0.05, 0.0, dropout=0.25)


@pytest.mark.parametrize("declared", [DECLARED, TUNED])
def test_a_study_is_written_as_it_is_read(declared, tmp_path):
    study = Study.of(declared)
    assert Study.of(tomllib.loads(study.toml())) == study
    (tmp_path / "study.toml").write_text(study.toml())
    assert Study.read(tmp_path) == Study.read(tmp_path / "study.toml") == study


def test_names_with_quotes_survive_the_file(tmp_path):
    study = Study.of({**DECLARED, "name": 'a "b" \\ c – τ'})
    path = tmp_path / "study.toml"
    path.write_text(study.toml(), "utf-8")
    assert Study.read(path) == study


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_written_as_they_are_read(name):
    study = Study.preset(name)
    assert Study.of(tomllib.loads(study.toml())) == study


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_the_studies_that_are_shipped_can_be_read(path):
    assert Study.read(path).name == path.parent.name


def test_a_file_of_arrays_lies_beside_its_study(tmp_path):
    path = tmp_path / "there" / "mine.toml"
    path.parent.mkdir()
    path.write_text(Study.of({**DECLARED, "dataset": "x.npz"}).toml())
    study = Study.read(path)
    assert study.dataset.endswith("x.npz")
    path.write_text(path.read_text().replace(study.dataset, "x.npz"))
    assert Study.read(path).dataset == str(tmp_path / "there" / "x.npz")


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("epoch", 3, "'epoch', which is not one of .*'recipe'"),
        ("netwroks", 3, "did you mean 'networks'"),
        ("recipe/wieght_decay", 0.1, "did you mean 'weight_decay'"),
        ("tuning/learning_rates", [0.1], "did you mean 'learning_rate'"),
        ("width/8/droput", 0.1, "did you mean 'dropout'"),
        ("widths", [0], "each of widths is 0; give a whole number from 1"),
        ("widths", [4, 8, 4], "give each once"),
        ("widths", [], r"widths is \[\]; give a list"),
        ("widths", 4, "widths is 4; give a list"),
        ("widths", [4.5, 8, 32], "each of widths is 4.5"),
        ("widths", [True, 8, 32], "each of widths is True"),
        ("networks", [1, 2], "give one number, or 3, one for each width"),
        ("networks", 0, "each of networks is 0"),
        ("networks", 10**7, "from 1 to 1000000"),
        ("networks", ..., "networks is"),
        ("name", ..., "name is None; give name ="),
        ("name", "two\nlines", "a line of text"),
        ("name", "", "a line of text"),
        ("dataset", 3, "dataset is 3"),
        ("family", "vgg", "did you mean 'vgg16'"),
        ("keep", "float8", "did you mean 'float"),
        ("recipe", 3, r"recipe is 3; make it a table, \[recipe\]"),
        ("recipe/epochs", ..., r"\[recipe\] has no epochs; add it"),
        ("recipe/epochs", 0, r"epochs of \[recipe\] is 0"),
        ("recipe/epochs", 2.5, r"epochs of \[recipe\] is 2.5"),
        ("recipe/batch", 0, "batch of"),
        ("recipe/augment", 1, "give true or false"),
        ("recipe/learning_rate", -0.1, "learning_rate of .recipe. is -0.1"),
        ("recipe/weight_decay", -1, "give a number from 0 on"),
        ("recipe/weight_decay", float("nan"), "give a number from 0 on"),
        ("recipe/momentum", 1.0, "from 0 to below 1"),
        ("recipe/dropout", "a", "dropout of .recipe. is 'a'; give a number"),
        ("width/9", {"dropout": 0.1}, "'9', which is not one of '4', '8', '32'"),
        ("width/8", 3, r"\[width.8\] is 3; make it a table"),
        ("width/8/epochs", 0, r"epochs of \[width.8\] is 0"),
        ("tuning/learning_rate", 0.1, "give a list of values to try"),
        ("tuning/learning_rate", [0.1, 0], "each learning_rate of .tuning. is 0"),
        ("tuning/weight_decay", ..., r"\[tuning\] has no weight_decay"),
        ("tuning/by", "nll", "by of .tuning. is 'nll'"),
        ("tuning/networks", 0, "networks of .tuning. is 0"),
        ("tuning", [1], r"tuning is \[1\]; make it a table"),
    ],
)
def test_a_mistake_in_a_study_names_its_place(tmp_path, path, value, sentence):
    with pytest.raises(InputError, match=sentence):
        Study.of(changed(TUNED, path, value))


def test_the_file_is_named_with_the_mistake(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(Study.of(DECLARED).toml() + "[tunning]\n")
    with pytest.raises(InputError, match=r"mine\.toml: .*did you mean 'tuning'"):
        study_of(path)
    path.write_text("name = ")
    with pytest.raises(InputError, match=r"mine\.toml is no TOML file"):
        study_of(path)
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(InputError, match=r"mine\.toml is no TOML file"):
        study_of(path)
    with pytest.raises(InputError, match=r"other\.toml"):
        study_of(tmp_path / "other.toml")
    with pytest.raises(InputError, match="did you mean 'paper-cifar10-vgg16'") as told:
        study_of("paper-cifar10-vgg")
    assert "or give a study file" in str(told.value)
    assert study_of("paper-cifar10-vgg16").family == "vgg16"
