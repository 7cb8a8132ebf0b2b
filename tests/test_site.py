"""The site tells the truth: its pages run, and its references leave nothing out."""

import doctest
import importlib.util
import inspect
import re
import shlex
import sys
from pathlib import Path

import pytest

from ensize.cli import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
PROGRAMS = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


references = loaded(DOCS / "references.py")
NAMES = [name for names in references.public().values() for name in names]
CLASSES = [name for name in NAMES if inspect.isclass(references.named(name))]
FUNCTIONS = [name for name in NAMES if name not in CLASSES]


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"auto\w+:: (\S+)", references.api())
    assert {f"ensize.{name}" for name in references.ensize.__all__} <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("name", CLASSES)
def test_what_a_public_class_can_do_is_documented(name):
    for key, member in vars(references.named(name)).items():
        if key.startswith("_"):
            continue
        if isinstance(member, (property, classmethod)) or inspect.isfunction(member):
            assert inspect.getdoc(member), f"{name}.{key}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_of_a_public_function_is_documented(name):
    function = references.named(name)
    told = inspect.getdoc(function)
    for asked in inspect.signature(function).parameters:
        assert re.search(rf"\b{asked}\b", told), f"{name}: {asked}"


@pytest.mark.parametrize("verb", references.verbs())
def test_every_option_of_a_verb_is_documented(verb):
    command = references.verbs()[verb]
    assert command.help, verb
    page = references.terminal()
    assert f"\n## {verb}\n" in page
    for option, told in references.options(verb, command):
        assert told.strip(), f"{verb} {option}"
        assert option.replace("|", "\\|") in page


def test_every_example_is_in_the_gallery_and_run_by_a_test():
    page = references.gallery()
    tests = "".join(
        path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    for name in PROGRAMS:
        assert f"examples/{name}.py" in page
        assert name in tests, f"no test runs examples/{name}.py"


def test_every_page_is_in_a_table_of_contents():
    index = (DOCS / "index.md").read_text("utf-8")
    listed = [
        line
        for tree in re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL)
        for line in tree.splitlines()
        if not line.startswith(":")
    ]
    made = {f"reference/{name.removesuffix('.md')}" for name in references.PAGES}
    pages = {path.stem for path in PAGES} - {"index"}
    assert sorted(listed) == sorted(pages | made)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_no_page_has_a_broken_link(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        path = page.parent / link
        made = path.parent.name == "reference" and path.name in references.PAGES
        assert made or path.exists(), f"{page.name} leads to {link}"


def test_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    """From top to bottom, what is typed is run and what is shown is true."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "tutorial.md").read_text("utf-8")
    blocks = re.findall(r"```(python|console)\n(.*?)```", page, re.DOTALL)
    assert [kind for kind, _ in blocks].count("console") == 4
    known, parser, runner = {}, doctest.DocTestParser(), doctest.DocTestRunner()
    for kind, block in blocks:
        if kind == "console":
            assert_real(block, monkeypatch, capsys)
            continue
        session = parser.get_doctest(block, known, "tutorial", "tutorial.md", 0)
        runner.run(session, clear_globs=False)
        known = session.globs
    assert runner.summarize().failed == 0


def assert_real(block, monkeypatch, capsys):
    """What a terminal shows is, word by word, what the page says; numbers nearly so."""
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert commands
    for command, shown in commands:
        program, *given = shlex.split(command)
        assert program == "ensize"
        spread = [
            each
            for word in given
            for each in sorted(map(str, Path().glob(word))) or [word]
        ]
        monkeypatch.setattr(sys, "argv", [program, *spread])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == (2 if shown.startswith("ensize: ") else 0)
        found = (said.err if ended.value.code else said.out).split()
        assert len(found) == len(shown.split()), command
        for one, other in zip(found, shown.split(), strict=True):
            try:
                assert float(one) == pytest.approx(float(other), rel=0.02, abs=0.002)
            except ValueError:
                assert re.sub(r"\d+", "#", one) == re.sub(r"\d+", "#", other)


def test_pages_that_show_python_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for page in ("enough", "networks"):
        found = doctest.testfile(str(DOCS / f"{page}.md"), module_relative=False)
        assert found.attempted > 4
        assert found.failed == 0
