"""The pages that the code writes: the Python and terminal references, the examples."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from typing import Any

import typer.main

import ensize
import ensize.cli
import ensize.figures
import ensize.integrations.lightning
import ensize.integrations.transformers
import ensize.synthetic

EXAMPLES = Path(__file__).parent.parent / "examples"

# What is public beside the front door, by the rooms that one imports it from.
DOORS = {
    "synthetic": ("World", "Family", "LawPlane", "noisy_curve"),
    "figures": ("draw",),
    "integrations": ("lightning.RecordPredictions", "transformers.RecordPredictions"),
}


def public() -> dict[str, list[str]]:
    """List every public name, with its module, room by room as data flows."""
    rooms: dict[str, list[str]] = {}
    for name in ensize.__all__:
        module = inspect.getmodule(getattr(ensize, name))
        assert module is not None
        room = module.__name__.split(".")[1]
        rooms.setdefault(room, []).append(f"ensize.{name}")
    for room, names in DOORS.items():
        rooms.setdefault(room, []).extend(f"ensize.{room}.{name}" for name in names)
    return rooms


def named(name: str) -> Any:
    """Find a public name."""
    module, _, last = name.rpartition(".")
    return getattr(sys.modules[module], last)


def api() -> str:
    """Write the reference of every public name."""
    lines = ["# Python", "", "Every public name, in the order in which data flows."]
    for room, names in public().items():
        first = (sys.modules[f"ensize.{room}"].__doc__ or "").splitlines()[0]
        told = first.partition(": ")[2] or first
        lines += ["", f"## {room}", "", told[0].upper() + told[1:]]
        for name in names:
            found = named(name)
            kind = "class" if inspect.isclass(found) else "function"
            kind = "exception" if name.endswith("Error") else kind
            lines += ["", f"```{{eval-rst}}\n.. auto{kind}:: {name}"]
            lines += ["   :members:"] if kind == "class" else []
            lines += ["```"]
    return "\n".join(lines) + "\n"


def verbs() -> dict[str, Any]:
    """List the verbs of the terminal, each with its command; first what serves all."""
    group: Any = typer.main.get_command(ensize.cli.app)
    return {"ensize": group, **group.commands}


def options(name: str, command: Any) -> list[tuple[str, str]]:
    """List a verb's arguments and options, and what `--help` says of each."""
    context = command.make_context(name, [], resilient_parsing=True)
    said = []
    for each in command.params:
        record = each.get_help_record(context)
        said.append(record or (each.human_readable_name, each.help or ""))
    return said


def terminal() -> str:
    """Write the reference of every verb with its options, as `--help` tells them."""
    lines = ["# Terminal", "", "What `ensize --help` and `ensize VERB --help` say."]
    for name, command in verbs().items():
        lines += ["", f"## {name}", "", inspect.cleandoc(command.help or "")]
        lines += ["", "| option | what it does |", "|---|---|"]
        for record in options(name, command):
            left, right = (cell.replace("|", "\\|") for cell in record)
            lines += [f"| `{left}` | {' '.join(right.split())} |"]
    return "\n".join(lines) + "\n"


def gallery() -> str:
    """Write the page of the examples, each with its narration and its source."""
    lines = ["# Examples", "", "Short programs, all of them run by the tests."]
    for path in sorted(EXAMPLES.glob("*.py")):
        source = path.read_text("utf-8")
        told = ast.get_docstring(ast.parse(source)) or ""
        title, _, story = told.partition("\n")
        lines += ["", f"## {title.rstrip('.')}", ""]
        lines += [f"`examples/{path.name}`", story.rstrip()]
        lines += ["", f"```{{literalinclude}} ../../examples/{path.name}"]
        lines += [":language: python", f":lines: {_after(source)}-", "```"]
    return "\n".join(lines) + "\n"


def _after(source: str) -> int:
    """Find the line after a program's docstring."""
    return (ast.parse(source).body[0].end_lineno or 0) + 2


PAGES = {"api.md": api, "terminal.md": terminal, "gallery.md": gallery}


def write(folder: Path) -> None:
    """Write the pages that have changed."""
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path, text = folder / name, page()
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
