"""The readers of the project, valid files for each, and how these are spoiled.

A reader makes its valid files once in an empty folder, and then any number of inputs:
`spoil` writes one, drawn from a `random.Random`, and `read` uses it as its user would.
"""

import contextlib
import importlib
import io
import json
import os
import shutil
import sys
from pathlib import Path
from random import Random

import numpy as np
from safetensors.numpy import save_file

import ensize
from ensize.stores import Store
from ensize.stores.networks import as_json, checksum
from hostile import mutations
from hostile.mutations import NASTY, NUMBERS

HEX = "0x" + "f" * 5000
NETWORKS, OBJECTS, CLASSES = 3, 8, 3


def arrays():
    """Make a small pool, and its true classes."""
    draw = np.random.default_rng(0)
    logits = draw.normal(0, 3, (NETWORKS, OBJECTS, CLASSES)).astype(np.float32)
    return logits, np.arange(OBJECTS) % CLASSES


def used(loaded):
    """Read what was loaded, as scores do."""
    for i in range(min(loaded.networks, 4)):
        if isinstance(loaded, ensize.Predictions):
            loaded.logits(i, 0, min(loaded.objects, 1000))
        else:
            loaded.rows[i][:]


def npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


class Npy:
    """Predictions and true classes as .npy."""

    def __init__(self):
        logits, targets = arrays()
        np.save("t.npy", targets)
        forms = [logits, logits[0], logits.astype(">f2"), np.asfortranarray(logits)]
        self.forms = [npy_bytes(each) for each in [*forms, logits.astype("f8")]]
        self.targets = npy_bytes(targets)

    def spoil(self, random):
        content = random.choice(self.forms)
        self.beside = "t.npy"
        name = "p.npy"
        if random.random() < 0.25:
            content, name, self.beside = self.targets, "u.npy", "u.npy"
        if random.random() < 0.5:
            content = mutations.npy_header(random)
        else:
            content = mutations.spoil(content, random, [*NUMBERS, *mutations.DTYPES])
        Path(name).write_bytes(content)
        if name == "u.npy":
            Path("p.npy").write_bytes(self.forms[0])

    def read(self):
        used(ensize.load("p.npy", targets=self.beside))


class Npz:
    """Archives of both, stored or compressed."""

    def __init__(self):
        logits, targets = arrays()
        self.members = {
            "logits.npy": npy_bytes(logits),
            "targets.npy": npy_bytes(targets),
        }
        self.forms = []
        for save in (np.savez, np.savez_compressed):
            buffer = io.BytesIO()
            save(buffer, logits=logits, targets=targets)
            self.forms.append(buffer.getvalue())
        self.bombs = [mutations.bomb(Random(seed)) for seed in range(3)]

    def spoil(self, random):
        how = random.random()
        if how < 0.4:
            content = mutations.spoil(random.choice(self.forms), random)
        elif how < 0.997:
            content = mutations.archive(random, self.members)
        else:
            content = random.choice(self.bombs)
        Path("p.npz").write_bytes(content)

    def read(self):
        used(ensize.load("p.npz"))


class Safetensors:
    """Arrays in .safetensors files, and single networks of a store."""

    def __init__(self):
        logits, targets = arrays()
        save_file({"logits": logits, "targets": targets}, "p.safetensors")
        store = Store("made")
        store.add("p", 1, logits[0], targets, size=10, width=2)
        store.add("s", 1, logits[0], targets, sketch=True)
        paths = ["p.safetensors", *(f"made/pools/{p}/1.safetensors" for p in "ps")]
        self.forms = [Path(path).read_bytes() for path in paths]
        self.said = store.metadata("s", 1)
        np.save("t.npy", targets)

    def spoil(self, random):
        how, form = random.random(), random.choice(self.forms)
        if how < 0.35:
            content = mutations.safetensors_header(random, self.said)
        elif how < 0.7:
            content = header_of(form, random)
        else:
            content = mutations.spoil(form, random, NUMBERS)
        Path("p.safetensors").write_bytes(content)

    def read(self):
        used(ensize.load("p.safetensors", targets="t.npy"))


def header_of(content, random, *, sealed=True):
    """Change what a .safetensors file says of itself, its numbers left as they are."""
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    said = header.get("__metadata__", {})
    for _ in range(random.choice([1, 1, 2])):
        if said and random.random() < 0.7:
            change(said, random)
        else:
            tensor = header[random.choice([k for k in header if k != "__metadata__"])]
            change(tensor, random)
    if sealed and "checksum" in said:
        with contextlib.suppress(TypeError, ValueError):
            said["checksum"] = checksum(said, [data])
    header = json.dumps(header).encode("utf-8", "surrogatepass")
    return len(header).to_bytes(8, "little") + header + data


def change(table, random):
    """Replace, remove or add an entry."""
    key, how = random.choice([*table, "x"]), random.random()
    if how < 0.15:
        table.pop(key, None)
    elif how < 0.75:
        words = [*NUMBERS, *NASTY, "[/x]", "sketch", "logits", "p", "s", "1", "2"]
        words += ["-200 200 1", "0 1 1", "0 999999999999 4", "-20 20 1000000000000"]
        table[key] = random.choice(words)
    else:
        table[key] = mutations.value(random)


class Csv:
    """Curves for `fit`."""

    def __init__(self):
        self.valid = b"n,cnll\n1,2.0\n2,1.5\n4,1.25\n8,1.1\n16,1.05\n"

    def spoil(self, random):
        if random.random() < 0.3:
            content = mutations.spoil(self.valid, random, [*NUMBERS, *NASTY])
        else:
            content = self._table(random)
        Path("c.csv").write_bytes(content)
        choice = [None, None, None, "1", "2", "n", "cnll", "0", "-1", "x", ""]
        self.columns = random.choice(choice), random.choice(choice)
        self.how = {
            "weights": random.choice(["inverse", "uniform"]),
            "method": random.choice(["robust", "paper"]),
        }

    def _table(self, random):
        rows = [["n", "cnll"]] if random.random() < 0.5 else []
        limit = random.choice([0.0, 0.5, 1e-9, 1e9, -3.0])
        gain, power = random.choice([1, 1e-12, -2, 1e300]), random.choice([-0.8, -9, 2])
        some = (1, 2, 3, 4, 8, 16)[: random.randrange(7)]
        rows += [[str(m), repr(limit + gain * float(m) ** power)] for m in some]
        for row in rows:
            if random.random() < 0.15:
                row[random.randrange(2)] = random.choice([*NUMBERS, *NASTY])
            if random.random() < 0.05:
                row.append(random.choice([*NUMBERS, *NASTY]))
            if random.random() < 0.03:
                row.pop()
        mark = random.choice([",", ",", ",", ",", ",", ";", "\t", ",,"])
        end = random.choice(["\n", "\n", "\n", "\r\n", "\r", "\n\n"])
        text = end.join(mark.join(row) for row in rows)
        return text.encode(random.choice(["utf-8"] * 8 + ["utf-16", "utf-8-sig"]))

    def read(self):
        from ensize.reading.columns import read_columns

        m, values, _ = read_columns("c.csv", *self.columns)
        found = ensize.fit(m, values, **self.how)
        assert found.message


class Text:
    """True classes as text, one in each line."""

    def __init__(self):
        logits, targets = arrays()
        np.save("p.npy", logits)
        self.valid = "\n".join(map(str, targets)).encode()

    def spoil(self, random):
        content = mutations.spoil(self.valid, random, [*NUMBERS, *NASTY])
        Path("t.txt").write_bytes(content)

    def read(self):
        used(ensize.load("p.npy", targets="t.txt"))


class Toml:
    """Study files."""

    def __init__(self):
        importlib.import_module("ensize.train.studies")

    valid = (
        ("name", '"a"'),
        ("dataset", '"digits"'),
        ("family", '"mlp"'),
        ("widths", "[2, 4]"),
        ("networks", "[3, 2]"),
        ("keep", '"float16"'),
        ("[recipe]", None),
        ("epochs", "2"),
        ("learning_rate", "0.1"),
        ("weight_decay", "1e-4"),
        ("dropout", "0.25"),
        ("batch", "64"),
        ("momentum", "0.9"),
        ("augment", "false"),
        ("[width.4]", None),
        ("learning_rate", "0.05"),
        ("[tuning]", None),
        ("learning_rate", "[0.1, 0.2]"),
        ("weight_decay", "[0.0]"),
        ("dropout", "[0.0, 0.5]"),
        ("epochs", "1"),
        ("networks", "2"),
        ("objects", "100"),
        ("by", '"accuracy"'),
    )

    def spoil(self, random):
        lines = list(self.valid)
        if random.random() < 0.5:
            lines = lines[:14]
        for _ in range(random.choice([0, 1, 1, 2])):
            at, how = random.randrange(len(lines)), random.random()
            key, said = lines[at]
            if how < 0.1:
                del lines[at]
            elif how < 0.2:
                lines.insert(random.randrange(len(lines)), (key, said))
            elif how < 0.9:
                lines[at] = key, _toml(random)
            else:
                lines[at] = random.choice([*NASTY, "[recipe]", "[x.y]", "[[a]]"]), said
        content = "\n".join(
            key if said is None else f"{key} = {said}" for key, said in lines
        ).encode("utf-8", "surrogatepass")
        if random.random() < 0.25:
            content = mutations.spoil(content, random, [*NUMBERS, *NASTY, "[", "{a="])
        Path("study.toml").write_bytes(content)

    def read(self):
        from ensize.train.studies.declarations import Study
        from ensize.train.studies.runs import check_study, wanted

        study = Study.read("study.toml")
        Path("again.toml").write_text(study.toml(), "utf-8")
        assert Study.read("again.toml") == study, "what it writes is another study"
        for width in study.widths[:3]:
            study.recipe_at(width)
            study.grid_at(width)
        if sum(study.networks) < 10_000:
            wanted(study, "1/2")
        check_study(study, Store("."))


def _toml(random, depth=0):
    """Draw a value, and mostly a well-formed one."""
    how = random.random()
    if how < 0.45:
        return random.choice([*NUMBERS, "1e400", "-nan", "+inf", "0o17", HEX])
    if how < 0.6:
        return json.dumps(random.choice([*NASTY, "mlp", "../x.npz", "cifar10"]))
    if how < 0.7:
        return random.choice(["true", "1979-05-27", "07:32:00", "'''\nx'''", "1979-05"])
    if how < 0.72:
        return random.choice(["[" * 3000, "{a=" * 3000, "[" * 200 + "]" * 200])
    if depth > 2:
        return "1"
    inner = [_toml(random, depth + 1) for _ in range(random.randrange(4))]
    if how < 0.92:
        return f"[{', '.join(inner)}]"
    return "{" + ", ".join(f"a{i} = {each}" for i, each in enumerate(inner)) + "}"


class Stored:
    """A store: claims, targets, headers, sketches, and what a study leaves in it."""

    def __init__(self):
        importlib.import_module("ensize.train.studies")
        logits, targets = arrays()
        store = Store("whole")
        self.known = {"size": 10, "width": 2, "family": "mlp", "multiply_adds": 20}
        for seed in range(NETWORKS):
            store.add("p", seed, logits[seed], targets, **self.known)
            store.add("s", seed, logits[seed], targets, sketch=True, width=0.5)
        others = {
            "tuning/mlp-w2.json": b'{"chosen": {"learning_rate": 0.1}}',
            "failures/mlp-w2/0.json": b'{"seed": 0, "reason": "its loss"}',
            "failures/mlp-w2/1000000.json": b'{"seed": 1000000, "reason": "[/]"}',
            "unfinished/mlp-w2/0-2+5.checkpoint": b"",
            "unfinished/mlp-w2.tuning/0-1.json": b'{"0": {"cnll": 1.0}}',
            "searches/a/1.json": b"{}",
        }
        for name, content in others.items():
            path = store.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        files = [each for each in sorted(store.path.rglob("*")) if each.is_file()]
        self.files = {str(f.relative_to(store.path)): f.read_bytes() for f in files}

    def spoil(self, random):
        shutil.rmtree("store", ignore_errors=True)
        for name, content in self.files.items():
            path = Path("store", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for _ in range(random.choice([1, 1, 1, 2])):
            self._harm(Path("store", random.choice(list(self.files))), random)
        self.choice = random.choice(["p", "s"]), random.random()

    def _harm(self, path, random):
        if not path.is_file():
            return
        content, how = path.read_bytes(), random.random()
        if how < 0.15:
            path.unlink()
            self._replaced(path, random)
        elif how < 0.25:
            name = path.name.replace("0", random.choice([*NUMBERS[:12], "٣", "a", ""]))
            path.rename(path.with_name(name or "x"))
        elif how < 0.3:
            whole = path.parent
            with contextlib.suppress(OSError):
                whole.rename(whole.with_name(random.choice(["q", ".a", "[x]", "p\n"])))
        elif how < 0.7 and path.suffix in (".json", ".safetensors"):
            with contextlib.suppress(UnicodeEncodeError):
                path.write_bytes(self._said(path, content, random))
        elif how < 0.75 and path.suffix == ".npy":
            path.write_bytes(mutations.npy_header(random))
        else:
            path.write_bytes(mutations.spoil(content, random, NUMBERS))

    def _said(self, path, content, random):
        try:
            if path.suffix == ".safetensors":
                return header_of(content, random)
            claim = json.loads(content)
            change(claim, random)
        except (AttributeError, RecursionError, TypeError, ValueError):  # harmed before
            return b"[" * 90_000
        if path.name == "pool.json" and random.random() < 0.9:
            claim["checksum"] = checksum(claim)
        return as_json(claim)

    def _replaced(self, path, random):
        how = random.randrange(7)
        if how == 0:
            path.symlink_to(random.choice(["/dev/zero", "/etc/passwd", path.name, "x"]))
        elif how == 1:
            os.mkfifo(path)
        elif how == 2:
            path.mkdir()
        elif how == 3:
            path.write_bytes(b"")
        elif how == 4:
            path.symlink_to(Path("whole/pools/p/0.safetensors").absolute())
        elif how == 5:
            path.write_bytes(b"[" * 100_000)

    def read(self):
        said = []
        name, choice = self.choice
        asked = [
            lambda: Store("store").pools(),
            lambda: Store("store").verify(repair=choice < 0.3),
            lambda: used(ensize.load("store", pool=name)),
            lambda: Store("store").add("p", 7, *_one(), **self.known),
            self._noted,
        ]
        for each in asked:
            try:
                each()
            except ensize.InputError as error:
                said.append(error)
        if said:
            raise said[0]

    def _noted(self):
        from ensize.train.studies.declarations import Study
        from ensize.train.studies.runs import chosen, lacking, left_out, wanted
        from ensize.train.tuning import scores_in
        from ensize.train.unfinished import checkpoints_in

        few = {"name": "a", "dataset": "digits", "family": "mlp", "widths": [2]}
        recipe = {"epochs": 1, "learning_rate": 0.1, "weight_decay": 0}
        study, store = (
            Study.of({**few, "networks": 3, "recipe": recipe}),
            Store("store"),
        )
        left_out(study, store, wanted(study))
        lacking(study, store, wanted(study))
        checkpoints_in(store.path / "unfinished/mlp-w2")
        scores_in(store.path / "unfinished/mlp-w2.tuning")
        chosen(store, "mlp-w2")


def _one():
    logits, targets = arrays()
    return logits[0], targets


class Terminal:
    """The verbs: options in every order, values of every kind, files spoiled or not."""

    def __init__(self):
        import typer

        from ensize.cli import app

        self.npy, self.csv, self.toml = Npy(), Csv(), Toml()
        self.stored = Stored()
        np.save("good.npy", arrays()[0])
        Path("good.csv").write_bytes(self.csv.valid)
        for room in ("ensize.train.studies", "ensize.figures"):
            importlib.import_module(room)  # no part of what inputs take

        self.verbs = typer.main.get_command(app).commands

    def spoil(self, random):
        if random.random() < 0.4:
            random.choice([self.npy, self.csv, self.toml, self.stored]).spoil(random)
        name = random.choice([*self.verbs] * 8 + ["", "socre", "--help", "--version"])
        if name not in self.verbs:
            self.line = [name, *self._some(random)]
            return
        self.line = [name]
        for each in self.verbs[name].params:
            option = each.opts[0]
            if each.param_type_name == "argument":
                self.line += self._files(name, random)
            elif option in _SLOW:
                continue
            elif option in _NEEDED or random.random() < 0.06:
                self.line.append(option)
                if not getattr(each, "is_flag", False):
                    self.line.append(self._value(option, random))
        if name in _LONG:  # nothing is trained here
            self.line += _LONG[name]
        if random.random() < 0.3:
            self.line.insert(1, "--json")
        if random.random() < 0.1:
            self.line.insert(random.randrange(len(self.line) + 1), self._word(random))
        if random.random() < 0.05:
            self.line.pop(random.randrange(len(self.line)))

    def _files(self, name, random):
        files = {"fit": ["c.csv", "good.csv"], "study": ["study.toml", "cifar10-vgg16"]}
        usual = files.get(name, ["store", "whole"])
        if name in ("score", "forecast"):
            usual = ["good.npy", "store", "whole", "p.npy"]
        others = ["t.npy", "missing", ".", "", "/dev/null", "*.npy", "c.csv", "\udcff"]
        return [
            random.choice(usual if random.random() < 0.85 else others)
            for _ in range(random.choice([1] * 8 + [0, 2]))
        ]

    def _value(self, option, random):
        if option in _WRITTEN:  # nothing is written outside of this folder
            return random.choice(["out", "out/a", "c.csv", "whole", "out.html", " "])
        if option == "--targets" and random.random() < 0.8:
            return "t.npy"
        if option == "--pool" and random.random() < 0.6:
            return random.choice("ps")
        if random.random() < 0.3:
            return random.choice(_CHOICES)
        if random.random() < 0.5:
            return random.choice(["1", "2", "0.5", "1,2", "1M", "3/4", "10%", "8"])
        return self._word(random)

    def _word(self, random):
        """Draw an argument; a program's arguments have no NUL in them."""
        words = [
            *NUMBERS,
            *NASTY,
            "-",
            "--",
            "-n",
            "--seed=x",
            "1,,2",
            "1,2,1",
            "\udcff",
        ]
        return random.choice(words).replace("\0", "").replace("/", "").replace("..", "")

    def _some(self, random):
        return [self._word(random) for _ in range(random.randrange(3))]

    def read(self):
        code, out, err = terminal(*self.line)
        assert code in (0, 1, 2), f"exit code {code}"
        if code == 0 and self.line[1:2] == ["--json"] and "--help" not in self.line:
            json.loads(out, parse_constant=_refused)
        assert not any(ord(each) < 32 and each != "\n" for each in out + err), (
            "it sends a terminal what the input says"
        )
        if code == 2:
            assert err.strip() or "Usage" in out, "nothing is said"
            said = [each for each in err.split("\n") if each.startswith("ensize: ")]
            assert len(said) < 2, "more than a sentence"
            raise ensize.InputError(err)


_NEEDED = ("--targets", "--to", "--budget", "--output", "-o", "--store", "--n", "-n")
# The last value of an option is taken: no folder can be made where a file is.
_LONG = {"study": ["--dry-run"], "demo": ["--output", "good.csv/a"]}
_LONG["search"] = ["--store", "good.csv/a"]
_SLOW = ("--timing",)  # it measures for as long as it takes
_CHOICES = ["logits", "probabilities", "log-probabilities", "before", "after", "all"]
_CHOICES += ["disjoint", "robust", "paper", "inverse", "uniform", "cnll", "accuracy"]
_CHOICES += ["parameters", "multiply-adds", "seconds", "1.5M", "0.5%", "0.9"]
_WRITTEN = ("--output", "-o", "--store", "--data")


def _refused(constant):
    raise AssertionError(f"{constant} in JSON")


def terminal(*line):
    """Run a verb in this process: its exit code, and what it printed."""
    from ensize.cli import main

    out, err, given = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["ensize", *line]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = ended.code or 0
    else:
        code = 0
    finally:
        sys.argv = given
    return code, out.getvalue(), err.getvalue()


READERS = {
    "npy": Npy,
    "npz": Npz,
    "safetensors": Safetensors,
    "csv": Csv,
    "text": Text,
    "toml": Toml,
    "store": Stored,
    "terminal": Terminal,
}
