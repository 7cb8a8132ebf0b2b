import json

import pytest
from typer.testing import CliRunner

from ensize import Store
from ensize.cli import app
from ensize.train.demo import demo_study
from ensize.train.studies import Study

COUNT = sum(demo_study(28).networks)


def run(*arguments):
    done = CliRunner().invoke(app, ["demo", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A demo of few networks, as it is left."""
    folder = tmp_path_factory.mktemp("demo")
    code, out, _ = run("-o", folder, "--networks", 28, "--no-report")
    assert code == 0
    return folder, out


def test_the_whole_demo_has_a_thousand_networks_of_five_sizes_or_more():
    study = demo_study()
    assert sum(study.networks) >= 1000
    assert len(study.widths) >= 5
    assert demo_study(1).networks == (4,) * len(study.widths)


def test_it_tells_a_story_and_leaves_a_store(folder):
    path, out = folder
    store = Store(path / "store")
    assert sum(pool.networks for pool in store.pools()) == COUNT
    assert Study.read(store.path) == demo_study(28)
    assert store.verify() == ()
    assert f"{COUNT} networks trained in" in out
    assert "The best split of a budget" in out
    assert f"Try: ensize split {store.path}" in out
    for pool in store.pools():
        assert f"{pool.size:,}" in out


def test_ensembles_gain_and_larger_networks_are_better(folder):
    path, _ = folder
    code, out, _ = run("-o", path, "--networks", 28, "--no-report", "--json")
    said = json.loads(out)
    assert code == 0
    assert (said["networks"], said["trained"], said["report"]) == (COUNT, 0, None)
    assert said["store"] == str(path / "store")
    assert said["seconds"] > 0
    for pool in said["pools"]:
        assert pool["cnll"][0] > pool["cnll"][-1] + 0.005
        assert 0.15 < pool["cnll"][-1] < 0.45
    assert said["pools"][0]["cnll"][0] > said["pools"][-1]["cnll"][0] + 0.05
    assert [each["budget"] for each in said["splits"]] == [2500, 9000, 38000]
    assert said["splits"][0]["verdict"]["code"] == "no split"
    assert said["warnings"] == []


def test_a_second_run_trains_nothing(folder):
    path, first = folder
    code, out, _ = run("-o", path, "--networks", 28, "--no-report")
    assert code == 0
    assert f"All {COUNT} networks are in {path / 'store'} already." in out
    rows = [line for line in first.splitlines() if "· n^" in line]
    assert len(rows) == 7
    assert rows == [line for line in out.splitlines() if "· n^" in line]
