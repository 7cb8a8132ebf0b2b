"""The site: the pages of this folder, and the references that the code writes."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import typer.main

import ensize
import ensize.cli

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "ensize"
author = "The ensize developers"
copyright = author  # noqa: A001
release = version = ensize.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "ensize"
templates_path: list[str] = []
nitpicky = False
autodoc_typehints = "none"  # the docstrings say in words what a parameter is
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_use_rtype = False


def _api() -> str:
    """Every public name, room by room, in the order in which data flows."""
    rooms: dict[str, list[str]] = {}
    for name in ensize.__all__:
        module = inspect.getmodule(getattr(ensize, name))
        assert module is not None
        room = ".".join(module.__name__.split(".")[:2])
        rooms.setdefault(room, []).append(name)
    lines = ["# Python", "", "Every public name, in the order in which data flows."]
    for room, names in rooms.items():
        first = (sys.modules[room].__doc__ or "").strip().splitlines()[0]
        lines += ["", f"## {room.removeprefix('ensize.')}", "", first]
        for name in names:
            kind = "class" if inspect.isclass(getattr(ensize, name)) else "function"
            kind = "exception" if name.endswith("Error") else kind
            lines += ["", f"```{{eval-rst}}\n.. auto{kind}:: ensize.{name}"]
            lines += ["   :members:"] if kind == "class" else []
            lines += ["```"]
    return "\n".join(lines) + "\n"


def _verbs() -> str:
    """Every verb with its options, as `--help` tells them."""
    group: Any = typer.main.get_command(ensize.cli.app)
    lines = ["# Terminal", "", "What `ensize VERB --help` says, verb by verb."]
    for name, command in group.commands.items():
        context = command.make_context(name, [], resilient_parsing=True)
        lines += ["", f"## {name}", "", inspect.cleandoc(command.help or "")]
        lines += ["", "| option | what it does |", "|---|---|"]
        for each in command.params:
            said = each.get_help_record(context)
            if said is None:
                said = (each.human_readable_name, getattr(each, "help", "") or "")
            left, right = (cell.replace("|", "\\|") for cell in said)
            lines += [f"| `{left}` | {' '.join(right.split())} |"]
    return "\n".join(lines) + "\n"


def _write(_app: object) -> None:
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for name, text in (("api.md", _api()), ("terminal.md", _verbs())):
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def setup(app: Any) -> None:
    """Write the references before the pages are read."""
    app.connect("builder-inited", _write)
