"""Store: a folder of pools, each network written whole or not at all.

::

    targets.npy                    the true classes, once
    pools/NAME/pool.json           what the networks of the pool have in common
    pools/NAME/SEED.safetensors    one network: its logits or its sketch, and metadata

A file is written under a hidden name in its own folder (`.….partial`), flushed to
the disk, and then linked to its name, which fails where the name is taken. So any
number of processes may write at once: the first writer of a network stays, and what
dead writers leave behind is never read. `pool.json` is claimed by the first writer
of the pool; it is derived, and without it what the networks have in common is read
from one of them.
"""

from ensize.stores.damage import Damage
from ensize.stores.files import FileArray, open_safetensors, reported
from ensize.stores.folder import PoolStatus, Store
from ensize.stores.networks import Network, fingerprint, true_classes
from ensize.stores.recordings import Recording

__all__ = [
    "Damage",
    "FileArray",
    "Network",
    "PoolStatus",
    "Recording",
    "Store",
    "fingerprint",
    "open_safetensors",
    "reported",
    "true_classes",
]
