"""Splits: how best to spend a budget on n networks of one size, and how sure we are.

Each split of a budget is worth an expected score that is known with an error. From
draws of all of them together (what other networks of the same recipe might have shown)
follow the probability that each is the best, how much the best one owes to having been
chosen, and whether it beats a single network that uses the whole budget.
"""

from ensize.splits.decisions import Split, Splits, split
from ensize.splits.joint import JointTest, joint_law_test
from ensize.splits.trials import OptimalSplits, optimal_splits_test

__all__ = [
    "JointTest",
    "OptimalSplits",
    "Split",
    "Splits",
    "joint_law_test",
    "optimal_splits_test",
    "split",
]
