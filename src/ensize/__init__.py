"""How many networks, and how large: power laws of deep ensembles."""

from ensize.checks import InputError
from ensize.curves import Curve, score
from ensize.predictions import Pool, Predictions
from ensize.sketches import Grid, Sketch

__all__ = ["Curve", "Grid", "InputError", "Pool", "Predictions", "Sketch", "score"]
