"""The examples with trainers of one's own run, and leave stores."""

import py_compile
import re
import tomllib
from pathlib import Path

from ensize import Store
from ensize.train.studies import Study

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def test_a_plain_pytorch_loop_drives_a_search(run_example, tmp_path):
    out = run_example("plain_pytorch", tmp_path, "--budget", "1.3k")
    assert "networks of mlp-w17, for n = 1" in out
    assert "split is worth it" in out
    pools = Store(tmp_path).pools()
    assert {pool.name for pool in pools} >= {"mlp-w8", "mlp-w17"}
    assert all(pool.size == 75 * pool.width + 10 for pool in pools)
    again = run_example("plain_pytorch", tmp_path, "--budget", "1.3k")
    assert "networks of" not in again.splitlines()[0]


def test_classifiers_of_scikit_learn_are_forecast(run_example, tmp_path):
    out = run_example("scikit_learn", tmp_path, "--networks", 4)
    assert out.count("with one network") == 3
    assert {pool.networks for pool in Store(tmp_path).pools()} == {4}
    assert run_example("scikit_learn", tmp_path, "--networks", 4) == out


def test_the_example_on_imagenet_compiles(tmp_path):
    py_compile.compile(
        str(EXAMPLES / "imagenet_resnet50.py"), str(tmp_path / "x.pyc"), doraise=True
    )


def test_the_study_on_the_page_on_training_can_be_read():
    page = (ROOT / "docs" / "training.md").read_text("utf-8")
    study, tuning = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    declared = tomllib.loads(study)
    assert Study.of(declared).recipe_at(8).learning_rate == 0.05
    assert len(Study.of(declared | tomllib.loads(tuning)).tuning.settings()) == 16
