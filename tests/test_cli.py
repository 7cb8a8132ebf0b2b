import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ensize
from ensize import Predictions, Store, fit, score
from ensize.cli import app, main
from reference import make_pool

SCORE = ["score", "{}/run-0.npy", "--targets", "{}/targets.npy"]
VERBS = [each.callback.__name__ for each in app.registered_commands]


@pytest.fixture
def pool(tmp_path):
    """Five networks in files, with their targets beside them."""
    logits, targets = make_pool(5, 60, 4)
    for i, each in enumerate(logits):
        np.save(tmp_path / f"run-{i}.npy", each)
    np.save(tmp_path / "targets.npy", targets)
    return tmp_path


def files(pool):
    return [str(path) for path in sorted(pool.glob("run-*.npy"))]


def run(*arguments):
    """Run a verb as `main` does, in this process; (exit code, stdout, stderr)."""
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


def test_score_prints_the_contracts_json(pool):
    code, out, _ = run(
        "score", *files(pool), "--targets", pool / "targets.npy", "--json"
    )
    assert code == 0
    said = json.loads(out)
    logits, targets = make_pool(5, 60, 4)
    curve = score(Predictions.of(logits, targets))
    assert (said["networks"], said["objects"], said["classes"]) == (5, 60, 4)
    assert said["warnings"] == list(curve.warnings)
    assert said["options"]["apply"] == "before"
    for point, record in zip(said["points"], curve.records(), strict=True):
        for key in (
            "n",
            "ensembles",
            "nll",
            "cnll",
            "cnll_whole",
            "le_nll",
            "accuracy",
            "brier",
            "jensen_gap",
            "temperature",
        ):
            assert point[key] == record[key]
    assert said["points"][-1]["cnll_se"] is None
    assert "NaN" not in out


def test_score_prints_a_table_for_people(pool):
    code, out, _ = run(
        "score", *files(pool), "--targets", pool / "targets.npy", "--n", "1,4"
    )
    assert code == 0
    title, head, *rows = out.splitlines()
    assert title.startswith("5 networks, 60 objects, 4 classes")
    assert head.split()[:4] == ["n", "ensembles", "nll", "cnll"]
    assert [row.split()[0] for row in rows] == ["1", "4"]


def test_options_reach_the_score(pool):
    others = pool / "others.npy"
    logits, targets = make_pool(5, 60, 4, seed=5)
    np.save(others, logits)
    np.save(pool / "truth.npy", targets)
    arguments = ["--ensembles", "disjoint", "--apply", "after", "--seed", "7"]
    arguments += ["--temperature", "1.5", "--keep-odd"]
    arguments += ["--calibrate-on", others, "--calibrate-targets", pool / "truth.npy"]
    _, out, _ = run(
        "score", *files(pool), "--targets", pool / "targets.npy", *arguments, "--json"
    )
    said = json.loads(out)
    mine, own = make_pool(5, 60, 4)
    curve = score(
        Predictions.of(mine, own),
        ensembles="disjoint",
        apply="after",
        temperature=1.5,
        calibrate_on=Predictions.of(logits, targets),
        keep_odd=True,
        seed=7,
    )
    assert [point["cnll"] for point in said["points"]] == curve.cnll.tolist()
    assert [point["nll"] for point in said["points"]] == curve.nll.tolist()
    assert said["options"]["calibrated"] == "separately"
    assert said["options"]["seed"] == 7
    assert said["options"]["n"] is None
    assert said["options"]["calibrate_on"] == [str(others)]


def test_a_store_to_calibrate_on_is_asked_for_the_same_pool(tmp_path):
    pools = {}
    for seed, name in enumerate(("ours", "theirs")):
        store = Store(tmp_path / name)
        logits, targets = make_pool(3, 60, 4, seed=seed)
        for network, each in enumerate(logits):
            store.add("a", network, each, targets)
            store.add("b", network, 2 * each, targets)
        pools[name] = store
    arguments = ["score", pools["ours"].path, "--calibrate-on", pools["theirs"].path]
    _, out, _ = run(*arguments, "--pool", "b", "--json")
    curve = score(pools["ours"].read("b"), calibrate_on=pools["theirs"].read("b"))
    found = [point["cnll"] for point in json.loads(out)["points"]]
    assert found == curve.cnll.tolist()


def test_fit_prints_the_law(tmp_path):
    path = tmp_path / "curve.csv"
    m = np.arange(1, 9)
    y = 0.3 + 0.2 * m**-0.9
    np.savetxt(path, np.c_[m, y], delimiter=",", header="n,cnll", comments="")
    code, out, _ = run("fit", path, "--json")
    said = json.loads(out)
    assert code == 0
    assert said["limit"] == pytest.approx(0.3, abs=1e-8)
    assert said["gain"] == pytest.approx(0.2, abs=1e-8)
    assert said["exponent"] == pytest.approx(-0.9, abs=1e-8)
    assert said["status"] == "fitted"
    assert said["warnings"] == []
    assert said["options"] == {
        "x": "n",
        "y": "cnll",
        "weights": "inverse",
        "method": "robust",
    }
    _, out, _ = run("fit", path)
    assert "cnll = limit + gain · n^exponent" in out
    _, out, _ = run("fit", path, "--method", "paper", "--weights", "uniform", "--json")
    paper = fit(m, np.loadtxt(path, delimiter=",", skiprows=1)[:, 1], method="paper")
    assert json.loads(out)["limit"] == pytest.approx(paper.limit, abs=1e-8)


def test_fit_finds_columns_by_name_or_number_with_or_without_a_head(tmp_path):
    rows = [f"x{m},{0.5 + 0.5 / m},{m}" for m in range(1, 7)]
    (tmp_path / "named.csv").write_text("\n".join(["label,score,size", *rows]))
    plain = [row.split(",", 1)[1] for row in rows]
    (tmp_path / "plain.csv").write_text("\n".join(plain) + "\n\n")
    tabs = (tmp_path / "named.csv").read_text().replace(",", "\t")
    (tmp_path / "tabs.csv").write_text(tabs)
    semicolons = (tmp_path / "plain.csv").read_text().replace(",", ";")
    (tmp_path / "semicolons.csv").write_text(semicolons)
    for arguments in (
        ["named.csv", "--x", "size", "--y", "score"],
        ["named.csv", "--x", "3", "--y", "2"],
        ["plain.csv", "--x", "2", "--y", "1"],
        ["tabs.csv", "--x", "size", "--y", "score"],
        ["semicolons.csv", "--x", "2", "--y", "1"],
    ):
        _, out, _ = run("fit", tmp_path / arguments[0], *arguments[1:], "--json")
        assert json.loads(out)["exponent"] == pytest.approx(-1, abs=1e-6)


def test_a_constant_curve_is_no_mistake_but_a_warning(tmp_path):
    (tmp_path / "flat.csv").write_text("1,2\n2,2\n3,2\n")
    code, out, _ = run("fit", tmp_path / "flat.csv", "--json")
    said = json.loads(out)
    assert code == 0
    assert said["status"] == "constant"
    assert said["exponent"] is None
    assert said["warnings"] == [said["message"]]


def test_status_and_verify_tell_what_is_there_and_what_is_damaged(tmp_path):
    logits, targets = make_pool(2, 20, 3)
    store = Store(tmp_path)
    for i in range(2):
        store.add("small", i, logits[i], targets, size=1000, width=4)
    code, out, _ = run("status", tmp_path, "--json")
    said = json.loads(out)
    assert code == 0
    assert said["pools"][0]["name"] == "small"
    assert said["pools"][0]["networks"] == 2
    assert said["damaged"] is None
    code, out, _ = run("verify", tmp_path, "--json")
    assert (code, json.loads(out)["damaged"]) == (0, [])
    _, out, _ = run("verify", tmp_path)
    assert "Every file is as it was written." in out
    path = tmp_path / "pools" / "small" / "1.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    code, out, _ = run("verify", tmp_path, "--json")
    assert code == 1
    assert json.loads(out)["damaged"][0]["path"] == "pools/small/1.safetensors"
    _, out, _ = run("verify", tmp_path)
    assert "damaged: pools/small/1.safetensors" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["score", "{}/nope.npy"], "nope.npy does not exist"),
        (["score", "{}/run-0.npy"], "--targets"),
        (
            ["score", "{}/run-0.npy", "--targets", "{}/run-0.npy"],
            "one true class for each",
        ),
        (["score", "{}"], "is no store"),
        (
            ["score", "{}/run-0.npy", "--targets", "{}/targets.npy", "--n", "1,x"],
            "'1,x'",
        ),
        (["score", "{}/run-0.npy", "--targets", "{}/targets.npy", "--n", "2"], "1 net"),
        (
            [*SCORE, "--kind", "probabilities"],
            "does not hold probabilities at object 0",
        ),
        (
            [*SCORE, "--calibrate-targets", "{}/targets.npy"],
            "goes with --calibrate-on",
        ),
        (
            [*SCORE, "--pool", "x"],
            "only a store has pools",
        ),
        (["status", "{}/nowhere"], "does not exist"),
        (["verify", "{}"], "is no store"),
        (["fit", "{}/nope.csv"], "does not exist"),
        (["fit", "{}/empty.csv"], "is empty"),
        (["fit", "{}/words.csv"], "'abc' in column 'y' on line 3"),
        (["fit", "{}/head.csv"], "has column names but no points"),
        (["fit", "{}/one.csv"], "has one column only"),
        (["fit", "{}/two.csv"], "there are 2 points"),
        (["fit", "{}/twice.csv"], "m is 2 at points 1 and 2"),
        (["fit", "{}/zero.csv"], "m is 0 at point 0"),
        (["fit", "{}/minus.csv"], "m is -1 at point 0"),
        (["fit", "{}/gap.csv"], "'' in column '2' on line 2"),
        (["fit", "{}/nan.csv"], "y is nan"),
        (["fit", "{}/twice.csv", "--x", "n"], "has no column 'n'"),
        (["fit", "{}/binary.csv"], "is no CSV file"),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(
    pool, monkeypatch, capsys, arguments, sentence
):
    curves = {
        "empty": "",
        "words": "x,y\n1,3\n2,abc\n3,1\n",
        "head": "x,y\n",
        "one": "1\n2\n3\n",
        "two": "1,3\n2,2\n",
        "twice": "1,3\n2,2\n2,1\n4,1\n",
        "zero": "0,3\n1,2\n2,1\n",
        "minus": "-1,3\n1,2\n2,1\n",
        "gap": "1,3\n2\n3,1\n",
        "nan": "1,3\n2,nan\n3,1\n",
    }
    for name, text in curves.items():
        (pool / f"{name}.csv").write_text(text)
    (pool / "binary.csv").write_bytes(b"\xff\xfe\x00\x9f" * 9)
    told = mistake(monkeypatch, capsys, *(a.format(pool) for a in arguments))
    assert told.startswith("ensize: ")
    assert sentence in told
    assert told.count("\n") == 1


def test_debug_shows_where_a_mistake_was_found(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ensize", "--debug", "status", "/nowhere"])
    with pytest.raises(ValueError, match="does not exist"):
        main()


def test_an_unknown_option_ends_with_exit_code_2(monkeypatch, capsys):
    assert "--targetz" in mistake(monkeypatch, capsys, "score", "x", "--targetz", "y")


def test_warnings_go_to_stderr_and_into_the_json(pool):
    np.save(pool / "run-4.npy", np.zeros((60, 4)))
    arguments = ["score", *files(pool), "--targets", pool / "targets.npy", "--json"]
    _, out, err = run(*arguments)
    said = json.loads(out)
    assert "1 of 5 networks (20%)" in said["warnings"][0]
    assert said["odd"][0].endswith("run-4.npy")
    assert "warning: 1 of 5 networks" in err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_and_is_in_the_readme(verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert len(out.splitlines()) > 5
    readme = Path(__file__).parent.parent / "README.md"
    assert f"ensize {verb}" in readme.read_text(encoding="utf-8")


def test_the_version_is_the_packages():
    assert run("--version") == (0, f"ensize {ensize.__version__}\n", "")


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "ensize", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "score" in done.stdout


def test_a_reader_who_leaves_early_gets_no_traceback(pool):
    given = f"{pool}/run-*.npy --targets {pool}/targets.npy"
    command = f"{sys.executable} -m ensize score {given} | head -1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=True
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["score", "--foo"], "no such option: --foo"),
        (["scor"], "no such command 'scor'"),
        (["score"], "missing argument 'PREDICTIONS'"),
        (["forecast", "x.npy", "--level", "high"], "invalid value for '--level'"),
        (["split", "store", "--budget"], "option '--budget' requires an argument"),
    ],
)
def test_a_command_line_that_makes_no_sense_gets_a_sentence(line, words):
    done = subprocess.run(
        [sys.executable, "-m", "ensize", *line],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"ensize: {words}")
    assert done.stderr.endswith("--help tells what there is)\n")
    assert done.stderr.count("\n") == 1


def test_without_a_verb_it_says_which_there_are():
    done = subprocess.run(
        [sys.executable, "-m", "ensize"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert "Score the ensembles of a pool" in done.stdout
