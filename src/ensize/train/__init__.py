"""Training: from seeds to logits, many networks at once; all that needs torch."""

import importlib.util

from ensize.checks import InputError

if importlib.util.find_spec("torch") is None:
    raise InputError(
        'training needs PyTorch, which is not installed; pip install "ensize[train]"'
    )
