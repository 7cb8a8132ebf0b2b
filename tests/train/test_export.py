import importlib.util
import io
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from typer.testing import CliRunner

from ensize import InputError, Store, score
from ensize.cli import app
from ensize.stores import open_safetensors
from ensize.stores.seals import sealed_arrays
from ensize.train.export import export_ensemble, probabilities
from ensize.train.images import load_data
from ensize.train.members import seeds_kept
from ensize.train.programs import FACTS
from ensize.train.studies import Study, train_study

RANDOM = np.random.default_rng(0)


def pictures(folder, side, objects=60, classes=3):
    """Write small pictures of which the brightness of each color tells the class."""
    arrays = {}
    for part in ("train", "test"):
        y = np.arange(objects) % classes
        x = RANDOM.integers(0, 120, (objects, 3, side, side), np.uint8)
        x[np.arange(objects), y] += 80
        arrays |= {f"x_{part}": x, f"y_{part}": y}
    np.savez(folder / "pictures.npz", **arrays)
    return str(folder / "pictures.npz")


def trained(folder, family, dataset, width, **changes):
    recipe = {"batch": 32, "learning_rate": 0.05, "weight_decay": 1e-3}
    recipe["epochs"] = 40 if family == "mlp" else 2
    declared = {"name": "few", "dataset": dataset, "family": family}
    declared |= {"widths": [width], "networks": 4, "recipe": recipe}
    study = Study.of({**declared, **changes})
    train_study(study, folder / "store", keep_weights=True)
    return Store(folder / "store")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A store of four perceptrons, with their weights."""
    return trained(tmp_path_factory.mktemp("digits"), "mlp", "few-digits", 8)


def asked(file, objects):
    """Ask an exported file, with PyTorch alone."""
    program = torch.export.load(file).module()
    with torch.inference_mode():
        return program(torch.from_numpy(objects)).numpy()


@pytest.mark.parametrize("apply", ["before", "after"])
def test_the_file_says_what_the_store_knows(digits, tmp_path, apply):
    file = tmp_path / "ensemble.pt2"
    made = export_ensemble(digits, None, 3, file, apply=apply)
    assert (made.networks, made.seeds, made.pool) == (3, (0, 1, 2), "mlp-w8")
    assert made.difference <= made.tolerance < 1e-3
    assert made.objects == 1000
    data = load_data("few-digits")
    answers = asked(file, data.x_test[:7])
    assert answers.shape == (7, 10)
    assert np.allclose(answers.sum(1), 1, atol=1e-5)
    alone = digits.read(seeds=[0, 1, 2])
    truth = probabilities(alone, 7, made.temperature, apply)
    assert np.allclose(answers, truth, atol=1e-5)
    everything = asked(file, data.x_test)
    nll = -np.log(everything[np.arange(len(data.y_test)), data.y_test]).mean()
    best = score(alone, n=[3], apply=apply)
    assert nll == pytest.approx(best.cnll_whole[0], abs=1e-5)
    assert made.cnll == pytest.approx(best.cnll[0], abs=1e-9)


@pytest.mark.parametrize(("family", "side"), [("vgg16", 32), ("wideresnet28", 8)])
def test_pictures_go_in_as_bytes(tmp_path, family, side):
    store = trained(tmp_path, family, pictures(tmp_path, side), 2, networks=2)
    made = export_ensemble(store, None, 2, tmp_path / "x.pt2")
    assert (made.shape, made.dtype, made.classes) == ((3, side, side), "uint8", 3)
    assert made.difference <= made.tolerance < 0.01


def test_a_fixed_temperature_and_the_facts_stand_in_the_file(digits, tmp_path):
    file = tmp_path / "ensemble.pt2"
    made = export_ensemble(digits, "mlp-w8", 2, file, temperature=1.75)
    assert made.temperature == 1.75
    extra = {FACTS: ""}
    torch.export.load(io.BytesIO(file.read_bytes()), extra_files=extra)
    said = json.loads(extra[FACTS])
    assert (said["temperature"], said["seeds"], said["networks"]) == (1.75, [0, 1], 2)


def test_networks_whose_weights_are_not_kept_are_not_taken(digits):
    assert seeds_kept(digits, "mlp-w8") == (0, 1, 2, 3)
    assert seeds_kept(digits, "other") == ()


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"n": 5}, "keeps the weights of 4 networks"),
        ({"n": 0}, "n is 0"),
        ({"pool": "mlp-w9"}, "mlp-w9"),
        ({"file": "ensemble.onnx"}, r"does not end in \.pt2"),
        ({"kind": "onyx"}, "did you mean 'onnx'"),
        ({"apply": "befor"}, "did you mean 'before'"),
        ({"temperature": 0.0}, "temperature is 0"),
        ({"file": "nowhere/ensemble.pt2"}, "cannot be written"),
    ],
)
def test_a_mistake_gets_a_sentence(digits, tmp_path, how, sentence):
    given = {"pool": None, "n": 2, "file": "ensemble.pt2", **how}
    file = tmp_path / given.pop("file")
    with pytest.raises(InputError, match=sentence):
        export_ensemble(digits, given.pop("pool"), given.pop("n"), file, **given)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def copy(digits, tmp_path):
    shutil.copytree(digits.path, tmp_path / "store")
    return Store(tmp_path / "store")


def change(path, make):
    """Put other weights in a file, as if they had been written there."""
    said, _ = open_safetensors(path)
    said.pop("checksum")
    weights = load_file(path)
    make(weights, said)
    path.write_bytes(sealed_arrays(weights, said))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda w, _: w["1.weight"].__iadd__(0.5), "do not belong together"),
        (lambda w, _: w["1.weight"].fill(np.nan), "1.weight is not finite"),
        (lambda w, _: w.pop("1.bias"), "1.bias has shape None"),
        (lambda _, said: said.update(seed="3"), "by itself it is seed '3'"),
        (lambda _, said: said.update(recipe="other"), "by itself it is"),
    ],
)
def test_weights_of_something_else_are_refused(copy, tmp_path, make, sentence):
    change(copy.path / "weights" / "mlp-w8" / "0.safetensors", make)
    file = tmp_path / "ensemble.pt2"
    file.write_text("what was there before")
    with pytest.raises(InputError, match=sentence):
        export_ensemble(copy, None, 2, file)
    assert file.read_text() == "what was there before"


def test_another_data_set_is_refused(copy, tmp_path):
    path = copy.path / "study.toml"
    path.write_text(path.read_text().replace("few-digits", "digits"))
    with pytest.raises(InputError, match="is not the one with which pool"):
        export_ensemble(copy, None, 2, tmp_path / "x.pt2")
    path.unlink()
    with pytest.raises(InputError, match=r"has no study\.toml"):
        export_ensemble(copy, None, 2, tmp_path / "x.pt2")


def test_a_store_without_weights_says_how_to_get_them(copy, tmp_path):
    shutil.rmtree(copy.path / "weights")
    with pytest.raises(InputError, match="--keep-weights trains them again"):
        export_ensemble(copy, None, 2, tmp_path / "x.pt2")


def test_onnx_without_its_library_is_named(digits, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "onnx" else find(name)
    )
    file = tmp_path / "x.onnx"
    with pytest.raises(InputError, match="pip install onnx onnxscript"):
        export_ensemble(digits, None, 2, file, kind="onnx")
    assert not file.exists()


def test_the_verb_tells_where_it_is_and_how_good(digits, tmp_path):
    file = tmp_path / "ensemble.pt2"
    given = ["export", str(digits.path), "-n", "3", "-o", str(file)]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{file}: 3 networks of mlp-w8, temperature")
    assert "within" in done.stdout
    done = CliRunner().invoke(app, [*given, "--json"])
    said = json.loads(done.stdout)
    assert (said["file"], said["networks"]) == (str(file), 3)
    assert said["temperature"] > 0
    assert said["difference"] <= said["tolerance"]
    assert said["warnings"] == []
