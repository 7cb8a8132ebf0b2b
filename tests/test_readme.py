"""The README tells the truth: its code runs, and its output is real output."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCKS = re.findall(
    r"```console\n\$ (.*?)\n(.*?)```", README.read_text("utf-8"), re.DOTALL
)


def test_the_python_of_the_readme_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


@pytest.mark.parametrize(("command", "shown"), BLOCKS)
def test_the_terminal_session_of_the_readme_is_real(command, shown):
    program, *arguments = command.split()
    assert program == "ensize"
    done = subprocess.run(
        [sys.executable, "-m", "ensize", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert_same_text(done.stdout, shown)


def test_the_readme_has_a_terminal_session():
    assert len(BLOCKS) == 3


def assert_same_text(found, shown):
    """Words are the same, and numbers as near as another machine's rounding brings."""
    one, other = (text.split() for text in (found, shown))
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        try:
            assert float(a) == pytest.approx(float(b), rel=0.05, abs=0.01)
        except ValueError:
            assert re.sub(r"[0-9.]+", "#", a) == re.sub(r"[0-9.]+", "#", b)
