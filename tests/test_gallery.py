"""The examples of the gallery run and say what they should."""

import pytest


@pytest.fixture
def run(run_example):
    def words(*of):
        return [line.split() for line in run_example(*of).splitlines()]

    return words


def test_theory_and_fit_come_near_the_truth(run):
    head, *rows, last = run("laws_and_theory")
    assert head[0] == "networks"
    for n, theory, fitted, truth in rows[1:]:
        assert float(fitted) == pytest.approx(float(truth), rel=0.015), n
        assert float(theory) == pytest.approx(float(truth), rel=0.03), n
    assert float(last[4].rstrip(";")) == pytest.approx(-1, abs=0.2)


def test_an_ensemble_is_served_and_better_than_a_network(run, tmp_path):
    rows = run("serve_ensemble", tmp_path, "--networks", 3, "--repeats", 3)[1:]
    assert [row[:2] for row in rows] == [
        ["1", "1"],
        ["1", "256"],
        ["3", "1"],
        ["3", "256"],
    ]
    assert all(0 < float(row[2]) <= float(row[3]) for row in rows)
    assert float(rows[2][4]) < float(rows[0][4])
    assert (tmp_path / "3.pt2").stat().st_size > (tmp_path / "1.pt2").stat().st_size
