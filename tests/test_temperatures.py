import numpy as np
import pytest

from ensize import Grid
from ensize.temperatures import calibrate, nll_at
from reference import best, make_pool, nll


def profile(logits, targets, grid, apply="before"):
    return np.array(
        [nll(logits, targets, 1 / b, apply) for b in grid.inverse_temperatures]
    )


POOLS = {
    "ordinary": {"classes": 10},
    "two classes": {"classes": 2},
    "a thousand classes": {"classes": 1000, "objects": 40, "scale": 2},
    "five objects": {"objects": 5, "classes": 3, "seed": 7},
    "overconfident": {"scale": 6},
    "timid": {"scale": 0.2},
}


@pytest.mark.parametrize("apply", ["before", "after"])
@pytest.mark.parametrize("kind", POOLS)
def test_nll_at_the_best_temperature_is_right_to_a_millionth(kind, apply):
    logits, targets = make_pool(**POOLS[kind])
    # Objects with very many classes want the nodes closer together.
    grid = Grid(-40, 40, per_octave=8) if "thousand" in kind else Grid(-20, 20)
    found = calibrate(grid, profile(logits, targets, grid, apply))
    truth, tau = best(logits, targets, apply, low=1 / 28, high=32)
    assert abs(found.nll - truth) <= 1e-6 * max(1, truth)
    if not found.at_edge:
        assert abs(np.log(found.temperature / tau)) < 1e-2


def test_of_two_valleys_the_deeper_is_found():
    grid = Grid(-16, 16)
    u = np.log(grid.inverse_temperatures)
    # Deeper between two nodes than the other is at a node.
    narrow = 2 - 1.0102 / (1 + 4 * (u - 1.41) ** 2)
    wide = 2 - 1 / (1 + (u - u[5]) ** 2)
    best_of_both = calibrate(grid, np.minimum(narrow, wide))
    assert abs(np.log(best_of_both.inverse) - 1.41) < 0.02


def test_an_edge_is_reported():
    grid = Grid(-8, 8)
    u = np.log(grid.inverse_temperatures)
    falling = calibrate(grid, np.stack([9 - u, 9 + u, (u - 0.1) ** 2]))
    assert falling.at_edge.tolist() == [True, True, False]
    np.testing.assert_allclose(
        falling.inverse[:2], grid.inverse_temperatures[[-1, 0]], rtol=1e-12
    )


def test_calibration_is_never_worse_than_any_node():
    random = np.random.default_rng(0)
    grid = Grid(-12, 12)
    rough = random.random((500, grid.nodes))
    assert np.all(calibrate(grid, rough).nll <= rough.min(axis=1))


def test_between_the_nodes_nll_is_right_to_a_millionth():
    logits, targets = make_pool(classes=10)
    grid = Grid(-20, 20)
    profiles = profile(logits, targets, grid)
    for tau in (0.3, 0.7, 1.0, 1.3, 2.9):
        truth = nll(logits, targets, tau)
        found = nll_at(grid, profiles[None], np.array([1 / tau]))[0]
        assert abs(found - truth) <= 1e-6 * max(1, truth)
    at_nodes = nll_at(
        grid, np.tile(profiles, (grid.nodes, 1)), grid.inverse_temperatures
    )
    np.testing.assert_allclose(at_nodes, profiles, rtol=1e-12)


def test_shapes_are_kept():
    grid = Grid(-4, 8)
    profiles = np.random.default_rng(1).random((3, 4, grid.nodes))
    assert calibrate(grid, profiles).nll.shape == (3, 4)
    assert nll_at(grid, profiles, 1.0).shape == (3, 4)


def test_a_grid_of_one_octave_is_enough():
    grid = Grid(0, 4)
    u = np.log(grid.inverse_temperatures)
    assert calibrate(grid, (u - 0.3) ** 2).nll < 1e-12
