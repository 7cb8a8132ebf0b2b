"""Searches: Algorithm 1 of the paper, as ask and tell, so that any trainer drives it.

The best split of a budget is sought along n = 1, 2, 4, … networks of size B/n. At most
six networks of each size are trained on the way; CNLL of more than these hold is
forecast. Where it no longer improves, the search has passed the optimum.
"""

from ensize.searches.algorithm import MemorySplitSearch
from ensize.searches.steps import Cost, Step, Wanted

__all__ = ["Cost", "MemorySplitSearch", "Step", "Wanted"]
