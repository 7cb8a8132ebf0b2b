"""The order of the rooms, and what importing the house costs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import ensize

ROOT = Path(ensize.__file__).parent

# Data flows down this list: a room imports only rooms above it.
ORDER = [
    "checks",
    "threads",
    "predictions",
    "sketches",
    "stores",
    "reading",
    "temperatures",
    "scores",
    "draws",
    "curves",
    "laws",
    "theory",
    "planes",
    "profiles",
    "forecasts",
    "splits",
    "searches",
    "synthetic",
    "evidence",
    "claims",
    "figures",
    "reports",
    "train",
    "integrations",
    "cli",
]

# Libraries that only some rooms may import, and which these are.
ONLY = {
    "torch": {"train"},
    "sklearn": {"train"},
    "pooch": {"train"},
    "ray": {"train"},
    "matplotlib": {"figures", "reports"},
    "lightning": {"integrations"},
    "pytorch_lightning": {"integrations"},
    "transformers": {"integrations"},
}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "ensize":
            yield from (f"ensize.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def rooms_imported(path):
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "ensize" and len(parts) > 1:
            yield parts[1]


def files():
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if not room.startswith("__"):
            yield room, path


def test_every_room_is_in_the_order():
    assert {room for room, _ in files()} <= set(ORDER)


def test_the_design_lists_the_rooms_in_this_order():
    page = (ROOT.parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    listed = re.findall(r"^  (\w+)(\.py|/) ", page, re.MULTILINE)
    there = {room: path.parent == ROOT for room, path in files()}
    assert [name for name, _ in listed if not name.startswith("__")] == ORDER
    for name, kind in listed:
        assert name.startswith("__") or there[name] == (kind == ".py"), name


def test_heavy_libraries_stay_in_their_rooms():
    for room, path in files():
        for name in imported(path):
            rooms = ONLY.get(name.split(".")[0], {room})
            assert room in rooms, f"{path} imports {name}"


def test_a_room_imports_only_rooms_above_it():
    for room, path in files():
        for other in rooms_imported(path):
            assert other in ORDER, f"{path} imports {other}, which is no room"
            assert ORDER.index(other) <= ORDER.index(room), f"{path} imports {other}"


def test_no_module_has_the_name_of_a_public_function():
    names = {path.stem for _, path in files()} | set(ORDER)
    assert not names & set(ensize.__all__)


def test_rooms_are_small():
    for _, path in files():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 400, f"{path} has {lines} lines and wants a door in it"


def test_importing_ensize_is_light():
    heavy = "{'scipy', 'torch', 'typer', 'rich', 'matplotlib', 'plotly', 'ray'}"
    code = (
        "import sys, ensize;"
        f"print(sorted({heavy} & {{name.split('.')[0] for name in sys.modules}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there_and_documented():
    for name in ensize.__all__:
        assert getattr(ensize, name).__doc__, name
