"""The core is tested alone where PyTorch or Matplotlib is not installed."""

import importlib.util
import signal

# In the background of a shell Ctrl-C is ignored; what it does is tested all the same.
signal.signal(signal.SIGINT, signal.default_int_handler)

NEEDED = {
    "torch": [
        *("train/*", "integrations/*"),
        *("fake_training.py", "stacked.py", "test_gallery.py"),
    ],
    "matplotlib": ["test_figures.py", "test_reports*.py", "test_site.py"],
}

collect_ignore_glob = [
    pattern
    for library, patterns in NEEDED.items()
    if importlib.util.find_spec(library) is None
    for pattern in patterns
]
