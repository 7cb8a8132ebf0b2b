"""The core is tested alone where PyTorch or Matplotlib is not installed."""

import importlib.util
import runpy
import signal
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

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


@pytest.fixture
def run_example(monkeypatch, capsys):
    """Run a program of the gallery, and take what it prints."""

    def run(name, *arguments):
        path = EXAMPLES / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run
