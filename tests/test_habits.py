"""What the project says of itself in several places, it says alike."""

import re
import tomllib
from pathlib import Path

import pytest

import ensize

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = dict(re.findall(r"^([a-z-]+):([^=\n]*)$", MAKEFILE, re.MULTILINE))


def pins(name):
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def bounds(requirements):
    return dict(
        re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", each).groups()
        for each in requirements
    )


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    cited = re.search(r"^version: (.*)$", citation, re.MULTILINE)[1]
    assert PROJECT["project"]["version"] == ensize.__version__ == cited


def test_the_oldest_dependencies_are_the_least_that_are_allowed():
    allowed = bounds(PROJECT["project"]["dependencies"])
    oldest = pins("oldest.txt")
    assert oldest.keys() == allowed.keys()
    for name, version in oldest.items():
        shortest = numbers(allowed[name])
        assert numbers(version)[: len(shortest)] == shortest, name


def test_what_ci_installs_is_pinned_and_allowed():
    project = PROJECT["project"]
    groups = PROJECT["dependency-groups"]
    wanted = [*project["dependencies"], *groups["dev"], *groups["docs"]]
    wanted += [*groups["peers"], *groups["integrations"]]
    wanted += [*project["optional-dependencies"]["train"]]
    wanted += [*project["optional-dependencies"]["figures"]]
    pinned = pins("constraints.txt")
    for name, least in bounds(wanted).items():
        assert numbers(pinned[name]) >= numbers(least), name


def test_make_help_lists_every_target():
    told = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE))
    assert told == set(TARGETS)
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)[1]
    assert set(phony.replace("\\", " ").split()) == told


@pytest.mark.parametrize("name", ["check", "release"])
def test_workflows_run_what_one_can_run_oneself(name):
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8")
    commands = re.findall(r"run: (.*)$", text, re.MULTILINE)
    assert commands
    for command in commands:
        program, *targets = command.split()
        assert program in {"make", ".ci/run"}
        assert set(targets) <= TARGETS.keys()
