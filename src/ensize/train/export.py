"""Export: an ensemble as one module, with its temperature built in.

The file is a program of `torch.export`: it needs PyTorch and nothing of ensize. It takes
objects as the data set holds them, pictures as bytes, however many at once, and answers
with the ensemble's probabilities, (objects, classes).
"""

from __future__ import annotations

import dataclasses
import io
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file
from scipy.special import softmax

from ensize.checks import InputError, one_of, whole
from ensize.draws import chance_level, odd_ones_out
from ensize.predictions import Predictions
from ensize.scores import APPLY, score_ensembles
from ensize.scores.search import sketch_of
from ensize.stores.files import brief, publish, reported
from ensize.temperatures import calibrate
from ensize.train.members import members_of
from ensize.train.networks import layers_of, named_weights

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ensize.predictions import Progress
    from ensize.stores import Store
    from ensize.train.images import Data
