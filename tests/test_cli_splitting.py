"""The verbs `split` and `search` on a terminal."""

import json
import sys

import pytest
from typer.testing import CliRunner

from ensize import Store, plane_of, split
from ensize.cli import app, main
from ensize.synthetic import Family

PAY = Family.splits_pay(objects=1000)
SIZES = [25_000 * 2**i for i in range(5)]


def run(*arguments):
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def mistake(monkeypatch, capsys, *arguments):
    """Run a verb that must end with exit code 2; its one sentence."""
    monkeypatch.setattr(sys, "argv", ["ensize", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err
    return told.err


def fill(path, sizes, networks):
    store = Store(path)
    for k, size in enumerate(sizes):
        pool = PAY.of(size).predictions(networks)
        for seed, logits in enumerate(pool.rows):
            store.add(
                *(f"w{k}", seed, logits, pool.targets),
                size=size,
                family="synthetic",
                multiply_adds=3 * size,
            )
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("plane"), SIZES, 8)


def test_split_prints_the_contracts_json(store):
    code, out, _ = run("split", store, "--budget", "400k", "--json")
    assert code == 0
    said = json.loads(out)
    found = split(plane_of(store), "400k")
    assert said["budget"] == 400_000
    assert said["splits"] == found.records()
    assert said["best"] in said["splits"]
    assert said["as_good"][0] in said["splits"]
    for key in ("pool", "n", "size", "total", "value", "low", "high", "probability"):
        assert key in said["best"]
    assert {each["source"] for each in said["splits"]} == {"measured", "forecast"}
    assert said["verdict"] == {"code": "split", "sentence": found.verdict.sentence}
    assert said["options"]["within"] == "0.5%"
    assert "NaN" not in out


def test_split_prints_a_table_and_the_verdict_for_people(store):
    code, out, _ = run("split", store, "--budget", "400k")
    assert code == 0
    title, head, *rows = out.splitlines()
    assert "400k parameters" in title
    assert head.split()[:5] == ["n", "pool", "size", "total", "cnll"]
    assert [row.split()[0] for row in rows[:5]] == ["1", "2", "4", "8", "16"]
    assert "A split is worth it: " in out


def test_options_reach_the_split(store):
    arguments = ["--budget", "1.2M", "--in", "multiply-adds", "--score", "accuracy"]
    arguments += ["--within", "0.01", "--probability", "0.95", "--seed", "3"]
    arguments += ["--apply", "after", "--keep-odd", "--method", "paper"]
    _, out, _ = run("split", store, *arguments, "--json")
    said = json.loads(out)
    options = {
        "score": "accuracy",
        "in": "multiply-adds",
        "within": "0.01",
        "probability": 0.95,
        "seed": 3,
        "apply": "after",
        "keep_odd": True,
        "method": "paper",
        "budget": "1.2M",
    }
    assert said["options"] == said["options"] | options
    assert {each["source"] for each in said["splits"]} == {"measured"}
    assert any("measured only" in each for each in said["warnings"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--budget", "15.3Q"], "budget is '15.3Q'"),
        (["--budget", "10k"], "the smallest network"),
        (["--budget", "400k", "--within", "much"], "within is 'much'"),
        (["--budget", "400k", "--probability", "0.4"], "probability is 0.4"),
        (["--budget", "400k", "--in", "seconds"], "seconds"),
        (["--budget", "400k", "--family", "vgg16"], "'vgg16'"),
    ],
)
def test_what_split_cannot_use_is_told_in_a_sentence(
    store, monkeypatch, capsys, arguments, sentence
):
    assert sentence in mistake(monkeypatch, capsys, "split", store, *arguments)


def test_split_wants_a_store_with_several_sizes(tmp_path, monkeypatch, capsys):
    one = fill(tmp_path / "one", SIZES[:1], 4)
    few = fill(tmp_path / "few", SIZES[:2], 2)
    told = mistake(monkeypatch, capsys, "split", one, "--budget", "50k")
    assert "1 size" in told
    assert "plane needs two" in told
    told = mistake(monkeypatch, capsys, "split", few, "--budget", "50k")
    assert "at least 3 networks" in told
    told = mistake(monkeypatch, capsys, "split", tmp_path / "no", "--budget", "50k")
    assert "does not exist" in told
