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


def test_the_python_of_the_readme_runs():
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


def test_the_terminal_session_of_the_readme_is_real(tmp_path):
    assert len(BLOCKS) == 2
    for command, shown in BLOCKS:
        program, *arguments = command.split()
        assert program == "ensize"
        done = subprocess.run(
            [sys.executable, "-m", "ensize", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert_same_text(done.stdout, shown)


def assert_same_text(found, shown):
    """Words are the same, and numbers but for the rounding of their last digit."""
    one, other = found.split(), shown.split()
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        try:
            assert float(a) == pytest.approx(float(b), rel=1e-3, abs=2e-5)
        except ValueError:
            assert a == b
