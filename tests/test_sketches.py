import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from ensize import Grid, InputError, Predictions, Sketch
from ensize.sketches import grid_for, log_probabilities
from ensize.temperatures import calibrate
from reference import best, make_pool


def reference(logits, targets, grid):
    logits = np.asarray(logits, np.float64)
    row = np.arange(len(targets))
    nodes = grid.inverse_temperatures
    return np.array([log_softmax(b * logits, axis=1)[row, targets] for b in nodes])


def test_a_grid_is_a_cut_of_one_lattice():
    wide, narrow = Grid(-13, 16), Grid(-4, 9)
    assert set(narrow.inverse_temperatures) <= set(wide.inverse_temperatures)
    assert wide.inverse_temperatures[-wide.first] == 1
    assert len(wide.inverse_temperatures) == wide.nodes
    assert wide.shared(narrow) == narrow.shared(wide) == narrow
    assert narrow.joined(wide) == wide
    assert np.all(np.diff(wide.inverse_temperatures) > 0)


def test_a_grid_without_temperature_one_is_refused():
    with pytest.raises(InputError, match="lacks the temperature 1"):
        Grid(4, 12)


def test_the_default_grid_spans_a_twentieth_to_twenty():
    nodes = grid_for(make_pool(1, scale=3)[0][0]).inverse_temperatures
    assert nodes[0] <= 1 / 20
    assert nodes[-1] >= 20


@pytest.mark.parametrize("scale", [1e-3, 0.05, 1, 40, 1e4])
def test_the_grid_moves_with_the_spread_of_the_logits(scale):
    logits = make_pool(1, scale=1)[0][0]
    spread = np.median(logits.std(axis=1))
    nodes = grid_for(scale * logits).inverse_temperatures * scale * spread / 4
    # In units of ordinary logits, a twentieth to twenty up to the step of 4.
    assert nodes[0] <= 2 / 20
    assert nodes[-1] >= 20 / 2
    assert 1 in grid_for(scale * logits).inverse_temperatures


@pytest.mark.parametrize(
    ("shape", "scale", "dtype", "tolerance"),
    [
        ((50, 10), 2, np.float64, 1e-13),
        ((50, 10), 2, np.float32, 2e-6),
        ((50, 2), 5, np.float32, 2e-6),
        ((20, 1000), 2, np.float32, 2e-6),
        ((50, 10), 1e4, np.float32, 2e-6),
        ((50, 10), 1e4, np.float64, 1e-13),
        ((50, 10), 1e-3, np.float32, 2e-6),
        ((50, 10), 3, np.float16, 2e-6),
    ],
)
def test_log_probabilities_equal_float64_softmax(shape, scale, dtype, tolerance):
    logits, targets = make_pool(1, *shape, scale=scale)
    held = logits[0].astype(dtype)
    block = held.astype(np.float32) if dtype == np.float16 else held
    grid = grid_for(block)
    truth = reference(held, targets, grid)
    error = np.abs(log_probabilities(block, targets, grid) - truth)
    # Relative to the sums of exponentials, whose arguments are rounded too.
    assert np.all(error <= tolerance * np.maximum(1, np.abs(truth)) * 16)
    assert np.isfinite(error).all()


def test_probabilities_that_crowd_at_one_keep_their_digits():
    logits = np.array([[50.0, 0.0], [200.0, 0.0]], np.float32)
    grid = Grid(-4, 4)
    logs = log_probabilities(logits, np.array([0, 0]), grid)[-grid.first]
    np.testing.assert_allclose(logs, [-np.exp(-50), 0], rtol=1e-6, atol=1e-45)


def test_ties_and_constant_rows_are_exact():
    logs = log_probabilities(np.zeros((3, 7)), np.array([0, 3, 6]), Grid(-8, 8))
    np.testing.assert_allclose(logs, -np.log(7), rtol=1e-15)


@pytest.mark.parametrize("classes", [5, 100, 1000])
def test_the_default_grid_finds_the_least_nll_to_a_millionth(classes):
    logits, targets = make_pool(1, 200, classes, scale=2, signal=3)
    sketch = Sketch.of(Predictions.of(logits, targets))
    truth, _ = best(logits, targets)
    found = calibrate(sketch.grid, sketch.member_nll()).nll[0]
    assert abs(found - truth) <= 1e-6 * max(1, truth)


def test_batches_fill_the_same_table_as_the_whole():
    logits, targets = make_pool(1, 40, 6)
    grid = Grid(-20, 20)
    whole = log_probabilities(logits[0], targets, grid)
    parts = [
        log_probabilities(logits[0, i : i + 7], targets[i : i + 7], grid)
        for i in range(0, 40, 7)
    ]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


def test_a_sketch_holds_every_network_whatever_the_blocks(monkeypatch):
    logits, targets = make_pool(3, 101, 6)
    pool = Predictions.of(logits, targets)
    grid = Grid(-7, 14)
    expected = [reference(each, targets, grid) for each in logits]
    for block in (6, 600, 700_000):
        monkeypatch.setattr("ensize.sketches._BLOCK", block)
        np.testing.assert_allclose(
            Sketch.of(pool, grid=grid).rows, expected, rtol=1e-9, atol=1e-13
        )


def test_networks_recorded_on_different_grids_share_octaves():
    logits, targets = make_pool(2, 10, 4)
    grids = [Grid(-13, 8), Grid(-4, 15)]
    rows = [
        log_probabilities(z, targets, g) for z, g in zip(logits, grids, strict=True)
    ]
    sketch = Sketch.gather(rows, grids, targets, classes=4, labels=["a", "b"])
    assert sketch.grid == Grid(-4, 8)
    expected = [reference(each, targets, Grid(-4, 8)) for each in logits]
    np.testing.assert_allclose(sketch.rows, expected, rtol=1e-9, atol=1e-13)


def test_a_sketch_of_another_shape_is_refused_by_name():
    with pytest.raises(InputError, match=r"^b has shape \(3, 10\)"):
        Sketch.gather(
            [np.zeros((4, 10)), np.zeros((3, 10))],
            [Grid(0, 4), Grid(0, 4)],
            np.zeros(10, int),
            classes=2,
            labels=["a", "b"],
        )


@given(st.floats(-9, 9), st.floats(-9, 9), st.integers(0, 9))
def test_a_grid_can_be_made_to_include_any_temperatures(a, b, beside):
    wanted = 2.0 ** np.array([a, b])
    grid = Grid(0, 1).including(wanted, beside=beside)
    nodes = grid.inverse_temperatures
    assert nodes[beside] <= wanted.min() * (1 + 1e-12)
    assert nodes[-1 - beside] >= wanted.max() * (1 - 1e-12)
    assert grid.joined(Grid(0, 1)) == grid


@settings(deadline=None, max_examples=30)
@given(st.floats(-1e3, 1e3), st.integers(0, 1000))
def test_a_constant_added_to_an_objects_logits_changes_nothing(shift, seed):
    logits, targets = make_pool(1, 8, 5, seed=seed)
    grid = Grid(-12, 12)
    plain = log_probabilities(logits[0], targets, grid)
    moved = log_probabilities(logits[0] + shift, targets, grid)
    np.testing.assert_allclose(moved, plain, rtol=1e-9, atol=1e-9)
