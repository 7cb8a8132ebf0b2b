"""The verb `search` on a terminal, with a trainer that takes no time."""

import json
import sys

import pytest
from typer.testing import CliRunner

from ensize.cli import app, main
from fake_training import Trainer, few_objects, install

STUDY = """
name = "few"
dataset = "digits"
family = "mlp"
widths = [4, 8]
networks = 3

[recipe]
epochs = 2
learning_rate = 0.1
weight_decay = 0.0
"""


@pytest.fixture
def study(monkeypatch, tmp_path):
    install(monkeypatch, Trainer(best_rate=0.01), few_objects(300))
    path = tmp_path / "few.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def search(*arguments):
    done = CliRunner().invoke(app, ["search", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def test_search_prints_the_contracts_json(study, tmp_path):
    arguments = [study, "--budget", "1k", "--store", tmp_path / "store", "--json"]
    arguments += ["--method", "paper", "--patience", "2", "--apply", "after"]
    code, out, err = search(*arguments)
    said = json.loads(out)
    assert code == 0
    assert [each["n"] for each in said["steps"]][:3] == [1, 2, 4]
    assert said["best"] in said["steps"]
    assert said["verdict"]["code"] in {"split", "no split"}
    assert said["networks_trained"] >= 7
    assert said["parameters_trained"] > 0
    assert said["done"]
    assert said["stopped"] is None
    chosen = {"method": "paper", "patience": 2, "apply": "after", "budget": 1000.0}
    assert said["options"] == said["options"] | chosen
    assert err.splitlines()[0].startswith("n = 1: 1 network of ")
    # A second time all is there.
    _, out, _ = search(*arguments)
    again = json.loads(out)
    assert again["steps"] == said["steps"]
    assert again["networks_trained"] == said["networks_trained"]


def test_search_prints_a_table_and_the_verdict_for_people(study, tmp_path):
    code, out, _ = search(study, "--budget", "1k", "--store", tmp_path / "store")
    assert code == 0
    title, head, *rows = out.splitlines()
    assert "1k parameters" in title
    assert head.split()[:5] == ["n", "pool", "size", "networks", "cnll"]
    assert rows[0].split()[0] == "1"
    assert "worth it" in out
    assert "Networks trained: " in rows[-1]


def test_a_search_that_is_out_of_time_says_how_to_go_on(study, tmp_path):
    arguments = [study, "--budget", "1k", "--store", tmp_path / "store"]
    code, out, _ = search(*arguments, "--minutes", "1e-9")
    assert code == 0
    assert "Stopped by --minutes; the same command goes on from here." in out


def test_interrupted_while_it_scores_a_search_goes_on(study, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    arguments = [study, "--budget", "1k", "--store", tmp_path / "store"]
    with monkeypatch.context() as patch:
        patch.setattr("ensize.searches.algorithm.score", stop)
        code, out, _ = search(*arguments)
    assert code == 130
    assert "Stopped by Ctrl-C" in out
    assert search(*arguments)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--budget", "15.3Q"], "budget is '15.3Q'"),
        (["--budget", "3"], "the smallest network has"),
        (["--budget", "1k", "--minutes", "-1"], "minutes is -1"),
        (["--budget", "1k", "--executor", "moon"], "executor is 'moon'"),
    ],
)
def test_what_search_cannot_use_is_told_in_a_sentence(
    study, tmp_path, monkeypatch, capsys, arguments, sentence
):
    argv = ["ensize", "search", study, "--store", tmp_path / "store", *arguments]
    monkeypatch.setattr(sys, "argv", list(map(str, argv)))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert sentence in told.err
    assert told.out == ""
