"""The verb `study` on a terminal, with a trainer that takes no time."""

import json
import os
import signal
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from ensize.cli import app, main
from ensize.train.studies import Study
from ensize.train.timing import timings
from fake_training import Trainer, install

FEW = """
name = "few"
dataset = "digits"
family = "mlp"
widths = [4, 8]
networks = [6, 3]
[recipe]
epochs = 5
learning_rate = 0.1
weight_decay = 0.0
"""


@pytest.fixture
def trainer(monkeypatch):
    return install(monkeypatch, Trainer())


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "few.toml"
    path.write_text(FEW)
    return path


def run(*arguments):
    done = CliRunner().invoke(app, ["study", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def test_it_trains_what_is_missing_and_says_so(study, trainer, tmp_path):
    store = tmp_path / "store"
    code, out, err = run(study, "--store", store)
    assert (code, err) == (0, "")
    assert out.startswith(f"9 of 9 networks are in {store}, 9 of them trained now, in")
    assert f"Try: ensize status {store}" in out
    code, out, _ = run(study, "--store", store, "--json")
    said = json.loads(out)
    keys = ("runs", "done", "failed", "trained", "stopped", "failures", "warnings")
    assert [said[key] for key in keys] == [9, 9, 0, 0, None, [], []]
    assert said["seconds"] > 0
    assert said["options"]["executor"] == "here"


def test_options_reach_the_study(study, trainer, tmp_path):
    store = tmp_path / "store"
    _, out, _ = run(
        *(study, "--store", store, "--part", "2/3", "--keep-weights", "--json")
    )
    assert json.loads(out)["runs"] == 3
    assert len(list((store / "weights").rglob("*.safetensors"))) == 3
    _, out, _ = run(study, "--store", store, "--minutes", 1e-9, "--json")
    said = json.loads(out)
    assert (said["stopped"], said["done"]) == ("--minutes", 3)


def test_ctrl_c_says_how_to_go_on(study, trainer, tmp_path):
    trainer.raises = lambda *_: os.kill(os.getpid(), signal.SIGINT)
    code, out, _ = run(study, "--store", tmp_path / "store")
    assert code == 128 + signal.SIGINT
    assert "Stopped by Ctrl-C with 9 networks left; the same command goes on" in out


def test_what_failed_is_warned_of(study, trainer, tmp_path):
    trainer.diverges = lambda width, _: width == 8
    code, out, err = run(study, "--store", tmp_path / "store", "--json")
    said = json.loads(out)
    assert (code, said["done"], said["failed"]) == (0, 6, 3)
    assert said["failures"][0]["reason"] == "its loss is not finite"
    assert err.count("warning: mlp-w8/") == len(said["warnings"]) == 3


def test_want_of_memory_ends_with_exit_code_1(study, trainer, tmp_path):
    trainer.raises = lambda width, _: MemoryError() if width == 8 else None
    code, _, err = run(study, "--store", tmp_path / "store")
    assert code == 1
    assert "3 networks of mlp-w8 could not be trained (MemoryError)" in err


def test_a_dry_run_trains_nothing(study, trainer, tmp_path):
    code, out, _ = run(study, "--store", tmp_path / "store", "--dry-run")
    assert code == 0
    assert "9 of 9 networks are missing" in out
    assert "Nothing was trained." in out
    assert trainer.asked == []
    assert not (tmp_path / "store").exists()
    said = json.loads(run(study, "--dry-run", "--json")[1])
    assert (said["runs"], said["done"]) == (9, 0)
    assert [each["missing"] for each in said["pools"]] == [6, 3]
    assert said["options"]["dry_run"] is True


def test_the_timing_table_is_measured(study, monkeypatch):
    for room in ("timing", "plans"):
        monkeypatch.setattr(f"ensize.train.{room}._PATIENCE", 0.01)
    code, out, _ = run(study, "--timing")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[2:4]] == [
        ["mlp-w4", "330"],
        ["mlp-w8", "682"],
    ]
    said = json.loads(run(study, "--timing", "--json")[1])
    assert (said["options"]["batch"], said["options"]["prediction_batch"]) == (64, 1024)
    for each in said["pools"]:
        assert each["together"] > 1
        for key in ("epoch", "prediction", "epoch_together", "prediction_together"):
            assert 0 < each[key] < 60


def test_a_network_that_does_not_fit_is_left_open(study, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr("ensize.train.timing.module", full)
    monkeypatch.setattr("ensize.train.timing.plan", full)
    first, _ = timings(Study.read(study))
    assert np.isnan([first.epoch, first.prediction, first.epoch_together]).all()
    code, out, err = run(study, "--timing", "--json")
    assert code == 0
    assert json.loads(out)["pools"][0]["epoch"] is None
    assert "warning: mlp-w4 does not fit into the memory of one device" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{}/few.toml"], "give --store DIR"),
        (["{}/nope.toml", "--store", "{}/s"], "nope.toml"),
        (
            ["paper-cifar10-vgg", "--store", "{}/s"],
            "'paper-cifar10-vgg16'",
        ),
        (["{}/odd.toml", "--store", "{}/s"], "did you mean 'networks'"),
        (["{}/few.toml", "--store", "{}/s", "--part", "3/2"], "give K/N"),
        (["{}/few.toml", "--store", "{}/s", "--device", "gpu"], "device is 'gpu'"),
        (["{}/few.toml", "--store", "{}/s", "--precision", "bf16"], "'tf32'"),
        (["{}/few.toml", "--store", "{}/s", "--executor", "slurm"], "'processes'"),
        (["{}/cifar.toml", "--store", "{}/s", "--data", "{}/none"], "is no folder"),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(
    study, tmp_path, monkeypatch, capsys, arguments, sentence
):
    (tmp_path / "odd.toml").write_text("netwroks = 3\n" + FEW)
    (tmp_path / "cifar.toml").write_text(
        FEW.replace("digits", "cifar10").replace("mlp", "vgg16")
    )
    given = [each.format(tmp_path) for each in arguments]
    monkeypatch.setattr(sys, "argv", ["ensize", "study", *given])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert ended.value.code == 2
    assert told.out == ""
    assert sentence in told.err
    assert told.err.count("\n") == 1
    assert not (tmp_path / "s" / "pools").exists()
