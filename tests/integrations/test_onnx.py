"""An ensemble in the format ONNX says what the store knows, run by other people."""

import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")

from ensize.train.export import export_ensemble, probabilities  # noqa: E402
from ensize.train.images import load_data  # noqa: E402
from ensize.train.programs import FACTS  # noqa: E402
from ensize.train.studies import Study, train_study  # noqa: E402


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    declared = {"name": "few", "dataset": "few-digits", "family": "mlp", "widths": [8]}
    recipe = {"batch": 32, "learning_rate": 0.05, "weight_decay": 1e-3, "epochs": 40}
    study = Study.of({**declared, "networks": 3, "recipe": recipe})
    train_study(study, folder, keep_weights=True)
    return folder


@pytest.mark.filterwarnings("ignore")  # of the converter to itself
@pytest.mark.parametrize("apply", ["before", "after"])
def test_the_file_says_what_the_store_knows(digits, tmp_path, apply):
    file = tmp_path / "ensemble.onnx"
    made = export_ensemble(digits, None, 3, file, kind="onnx", apply=apply)
    assert made.difference <= made.tolerance < 1e-3
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    said = {each.key: each.value for each in model.metadata_props}
    assert json.loads(said[FACTS])["temperature"] == made.temperature
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    from ensize import Store

    objects = load_data("few-digits").x_test
    for count in (1, 7):  # however many at once
        (answers,) = session.run(None, {"objects": objects[:count]})
        pool = Store.open(digits).read()
        truth = probabilities(pool, count, made.temperature, apply)
        np.testing.assert_allclose(answers, truth, atol=1e-5)
