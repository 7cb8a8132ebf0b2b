"""The README tells the truth: its code runs, and its output is real output."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(
    r"```console\n\$ (.*?)\n(.*?)```", README.read_text("utf-8"), re.DOTALL
)
TIMED = re.compile(r"This took|trained in|are in .* already")


def test_the_python_of_the_readme_runs():
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


@pytest.mark.slow
def test_the_terminal_session_of_the_readme_is_real(tmp_path):
    assert len(BLOCKS) == 2
    for command, shown in BLOCKS:
        program, *arguments = command.split()
        assert program == "ensize"
        options = ["--no-report"] if arguments[0] == "demo" else []
        done = subprocess.run(
            [sys.executable, "-m", "ensize", *arguments, *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert_same_text(done.stdout, shown)


def assert_same_text(found, shown):
    """Words are the same, and numbers as near as another machine's rounding brings.

    Nothing is asked of how long it took.
    """
    one, other = (
        [
            word
            for line in text.splitlines()
            if not TIMED.search(line)
            for word in line.split()
        ]
        for text in (found, shown)
    )
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        try:
            assert float(a) == pytest.approx(float(b), rel=0.05, abs=0.01)
        except ValueError:
            assert re.sub(r"[0-9.]+", "#", a) == re.sub(r"[0-9.]+", "#", b)
