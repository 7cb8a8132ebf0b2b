import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensize.draws import balanced, chance_level, disjoint, odd_ones_out, subsets


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 9))
def test_disjoint_groups_share_no_network(networks, n, seed):
    drawn = disjoint(networks, n, seed)
    assert drawn.shape == (networks // n, n)
    assert len(set(drawn.ravel().tolist())) == drawn.size


def test_every_subset_is_listed_where_there_are_few():
    expected = set(itertools.combinations(range(8), 4))
    assert {tuple(each) for each in subsets(8, 4).tolist()} == expected
    assert len(subsets(64, 64)) == 1
    assert len(subsets(64, 1)) == 64


@settings(deadline=None)
@given(st.integers(2, 70), st.data())
def test_drawn_subsets_are_distinct_networks_each_equally_often(networks, data):
    n = data.draw(st.integers(1, networks))
    drawn = subsets(networks, n, seed=data.draw(st.integers(0, 9)))
    assert all(len(set(each)) == n for each in drawn.tolist())
    assert len(set(np.bincount(drawn.ravel(), minlength=networks).tolist())) == 1
    assert len(drawn) >= min(16, math.comb(networks, n))
    assert np.array_equal(drawn, subsets(networks, n, seed=0)) or len(drawn) >= 16


def test_dealt_subsets_favor_no_pair():
    """Over many deals every pair of networks meets about equally often."""
    meetings = np.zeros((9, 9))
    for seed in range(400):
        for each in balanced(9, 4, 9, seed):
            meetings[np.ix_(each, each)] += 1
    pairs = meetings[np.triu_indices(9, 1)]
    expected = 400 * 9 * (4 * 3) / (9 * 8)
    assert abs(pairs.mean() - expected) < 1e-9
    # A pair's count over independent deals: a standard deviation of some 20.
    assert np.abs(pairs - expected).max() < 5 * math.sqrt(expected)


@pytest.mark.parametrize(
    ("nll", "odd"),
    [
        ([0.5, 0.52, 0.48, 0.51, 2.3], [4]),
        ([0.5, 2.3, 2.302, 2.29, 0.51], [1, 2, 3]),
        ([2.3, 2.302, 2.303, 2.31], []),  # nobody trained: nobody is odd
        ([2.303, 2.31], []),
        ([0.5, 0.51, 0.505, 0.52], []),
        ([0.500001, 0.5, 0.500002, 0.51], []),  # near twins and a sound one
        ([0.3, 0.6, 0.9, 1.2, 1.5], []),  # a wide spread
        ([0.5, 0.52, 0.48, 0.51, 0.5, 1.5], [5]),  # far, though not at chance
        ([2.2, 2.21, 2.19, 2.2, 2.301], [4]),  # a hard task, and one at chance
        ([0.5], []),
        ([0.5, 1.9], []),  # of two, neither is usual
    ],
)
def test_the_odd_ones_are_those_that_did_not_train(nll, odd):
    assert odd_ones_out(np.array(nll), chance=2.3026).tolist() == odd


def test_chance_is_the_entropy_of_the_classes():
    assert chance_level(np.zeros(10, int)) == 0
    random = np.random.default_rng(0)
    shares = np.array([0.7, 0.2, 0.1])
    few = [chance_level(random.choice(3, 30, p=shares)) for _ in range(4000)]
    # Miller and Madow: without bias but for terms of the second order.
    assert np.mean(few) == pytest.approx(-(shares * np.log(shares)).sum(), abs=0.01)
