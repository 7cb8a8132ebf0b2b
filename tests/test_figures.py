"""Figures: what is drawn is what was computed, and can be read."""

import csv
import dataclasses
import itertools
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ensize import InputError, Sketch, Store, fit, score
from ensize.cli import app
from ensize.evidence import evidence_of, gather_evidence
from ensize.figures import DRAWINGS, draw, draw_each, style, write_all
from ensize.figures.files import as_picture
from ensize.planes import plane_of
from ensize.profiles import compare, profile
from ensize.splits import optimal_splits_test
from ensize.synthetic import Family, World
from reference import make_pool

SIZES = (20_123, 40_456, 80_789, 161_234)
UNREGULARIZED = ("unregularized-plane", "unregularized-laws")


def fill(store, worlds, networks, **known):
    for i, world in enumerate(worlds):
        pool = world.predictions(networks)
        for seed in range(networks):
            store.add(
                f"vgg16-w{2**i}",
                seed,
                pool.logits(seed, 0, pool.objects),
                pool.targets,
                size=world.size,
                width=2.0**i,
                family="vgg16",
                extra={"seconds": 10 * 2**i + seed, "prediction_seconds": 0.5 * 2**i},
                **known,
            )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make three stores: of a study, of one without regularization, and recorded."""
    folder = tmp_path_factory.mktemp("stores")
    family = Family.splits_pay(objects=240)
    worlds = [family.of(size) for size in SIZES]
    for name, decay in (("study", 3e-4), ("unregularized", 0.0)):
        store = Store(folder / name)
        recipe = f"{name}: worlds, epochs 20, weight_decay {decay}, dropout 0.0"
        fill(store, worlds, 14, recipe=recipe)
        study = f'name = "{name}"\n[recipe]\nepochs = 20\n'
        (folder / name / "study.toml").write_text(study)
        worlds = [
            dataclasses.replace(world, margin=world.margin - 0.1 * i**2)
            for i, world in enumerate(worlds)
        ]
    store = Store(folder / "recorded")
    pool = World(objects=240).predictions(8)
    for seed in range(8):
        store.add("resnet50", seed, pool.logits(seed, 0, 240), pool.targets)
    return folder


@pytest.fixture(scope="module")
def stores(folder):
    return {
        name: gather_evidence(folder / name)[0]
        for name in ("study", "unregularized", "recorded")
    }


@pytest.fixture
def drawn(stores):
    def drawn(name):
        which = "study"
        if name in UNREGULARIZED:
            which = "unregularized"
        return draw(name, stores["recorded" if name == "elsewhere" else which])

    return drawn


def data_axes(figure):
    """Choose the axes that are not the scale of others."""
    return [each for each in figure.axes if each.get_label() != "<colorbar>"]


def column(records, name, **where):
    return [
        record[name]
        for record in records
        if all(record[key] == value for key, value in where.items())
    ]


def visible_texts(figure):
    for axes in figure.axes:
        low, high = sorted(axes.get_xlim())
        bottom, top = sorted(axes.get_ylim())
        if axes.axison:
            for at, label in zip(
                axes.get_xticks(), axes.get_xticklabels(), strict=False
            ):
                if low <= at <= high:
                    yield label
            for at, label in zip(
                axes.get_yticks(), axes.get_yticklabels(), strict=False
            ):
                if bottom <= at <= top:
                    yield label
            yield from (axes.xaxis.label, axes.yaxis.label)
        yield from (axes.title, axes._left_title, *axes.texts)
        yield axes.xaxis.get_offset_text()
        yield axes.yaxis.get_offset_text()
        if axes.get_legend():
            yield from axes.get_legend().get_texts()
    for legend in figure.legends:
        yield from legend.get_texts()


def boxes(figure):
    """Find where all letters of a figure are, in dots."""
    figure.draw_without_rendering()
    for text in visible_texts(figure):
        if text.get_text().strip() and text.get_visible():
            yield text.get_text(), text.get_window_extent()


def assert_readable(figure):
    found = list(boxes(figure))
    assert found
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in found:
        inside = box.x0 >= -1 and box.y0 >= -1
        inside = inside and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"{text!r} leaves the figure"
    for (one, box), (other, another) in itertools.combinations(found, 2):
        across = min(box.x1, another.x1) - max(box.x0, another.x0)
        along = min(box.y1, another.y1) - max(box.y0, another.y0)
        # Letters side by side need a gap, or else they are read together.
        assert across <= -2 or along <= 0.5, f"{one!r} lies on {other!r}"


@pytest.mark.parametrize("name", DRAWINGS)
def test_each_figure_is_drawn_readable_and_says_what_it_rests_on(name, drawn):
    found = drawn(name)
    assert found.records
    assert found.figure.get_size_inches()[0] == style.WIDTH
    assert_readable(found.figure)
    assert {text.get_fontsize() for text in visible_texts(found.figure)} <= {6.0, 7.0}
    assert "240 test objects" in found.caption
    assert found.caption.endswith(".")
    units = {"splits-accuracy": "%", "timing": "Seconds", "temperatures": "temperature"}
    units["optimal-splits"] = "Networks"
    assert units.get(name, "nats") in found.caption or name == "envelope"


@pytest.mark.parametrize("name", [n for n, each in DRAWINGS.items() if each.together])
def test_stores_are_compared_in_one_figure(name, stores):
    both = [stores["study"], stores["unregularized"]]
    found = draw(name, both)
    named = set(column(found.records, "store"))
    one = {"unregularized"}
    assert named == (one if name in UNREGULARIZED else {"study", *one})
    assert_readable(found.figure)


def test_curves_are_the_scores_and_the_laws_are_their_fits(stores, drawn):
    evidence, found = stores["study"], drawn("curves")
    curve = score(evidence.pools[-1], n=evidence.curve(3).n.tolist())
    kept = curve.averaged()
    plain, logs = data_axes(found.figure)
    for score_name, line in zip(("nll", "cnll"), plain.get_lines()[::2], strict=True):
        values = getattr(curve, score_name)[kept]
        assert line.get_xdata() == pytest.approx(curve.n[kept])
        assert line.get_ydata() == pytest.approx(values, abs=1e-12)
        assert column(found.records, "value", score=score_name) == pytest.approx(values)
        law = fit(curve.n[kept], values).law
        drawn_law = column(found.records, "law", score=score_name)
        assert drawn_law == pytest.approx(law(curve.n[kept]))
    law = fit(curve.n[kept], curve.cnll[kept])
    points, line = logs.get_lines()[2:]
    above = curve.cnll[kept] - law.limit
    assert points.get_ydata() == pytest.approx(above[above > 0])
    expected = law.law(line.get_xdata()) - law.limit
    assert line.get_ydata() == pytest.approx(expected)


def test_laws_along_the_size_are_those_of_the_curves(stores, drawn):
    evidence, found = stores["study"], drawn("calibrated")
    laws = []
    for curve in evidence.plane.curves:
        kept = curve.averaged()
        laws.append(fit(curve.n[kept], curve.cnll[kept]))
    names = ("limit", "gain", "exponent", "rmse_log2")
    for name, axes in zip(names, data_axes(found.figure), strict=True):
        line = axes.get_lines()[0]
        assert line.get_xdata().tolist() == list(SIZES)
        assert line.get_ydata() == pytest.approx([getattr(x, name) for x in laws])
        assert column(found.records, name) == pytest.approx(line.get_ydata())


def test_laws_at_fixed_temperatures_are_those_of_profiles(stores, drawn):
    evidence, found = stores["study"], drawn("fixed-temperature")
    for k in range(len(SIZES)):
        along = profile(evidence.pools[k])
        for name, axes in zip(
            ("limit", "gain", "exponent", "rmse_log2"),
            data_axes(found.figure),
            strict=True,
        ):
            line = axes.get_lines()[k]
            assert line.get_xdata() == pytest.approx(along.temperature)
            assert line.get_ydata() == pytest.approx(getattr(along.laws, name))
            recorded = column(found.records, name, size=SIZES[k])
            assert recorded == pytest.approx(getattr(along.laws, name))


def test_temperature_curves_are_profiles_both_ways_round(stores, drawn):
    pool, found = stores["study"].pools[0], drawn("temperature-curves")
    axes = data_axes(found.figure)
    for apply, axis in zip(("before", "after"), axes, strict=True):
        along = profile(pool, apply=apply)
        temperatures = sorted(
            {
                each["temperature"]
                for each in found.records
                if (each["apply"], each["score"]) == (apply, "nll")
            }
        )
        assert [temperatures[0], temperatures[-1]] == [0.5, 3.0]
        for temperature, line in zip(temperatures, axis.get_lines(), strict=False):
            i = int(np.argmin(abs(along.temperature - temperature)))
            assert line.get_ydata() == pytest.approx(along.nll[i])
            fixed = {"apply": apply, "temperature": temperature}
            recorded = column(found.records, "value", **fixed)
            assert recorded == pytest.approx(along.nll[i])
    both = compare(pool)
    dashed = axes[1].get_lines()[-1].get_ydata()
    assert dashed == pytest.approx(both.after[both.ensembles >= 3])


def test_the_best_temperature_is_the_curves(stores, drawn):
    found = drawn("temperatures")
    for curve, line in zip(
        stores["study"].plane.curves,
        data_axes(found.figure)[0].get_lines(),
        strict=True,
    ):
        assert line.get_ydata() == pytest.approx(curve.temperature[curve.averaged()])


def test_high_temperatures_are_one_and_three(stores, drawn):
    found = drawn("high-temperature")
    assert sorted(set(column(found.records, "temperature"))) == [1.0, 3.0]
    along = profile(stores["study"].pools[0], temperatures=[1.0, 3.0])
    for i, temperature in enumerate((1.0, 3.0)):
        values = column(found.records, "value", temperature=temperature)
        assert values == pytest.approx(along.nll[i][along.ensembles >= 3])


@pytest.mark.parametrize("name", ["plane", "unregularized-plane"])
def test_maps_of_cnll_are_the_plane(name, stores, drawn):
    evidence = stores["study" if name == "plane" else "unregularized"]
    found = drawn(name)
    mesh = data_axes(found.figure)[0].collections[0]
    n = sorted(set(column(found.records, "n")))
    assert mesh.get_array().filled(np.nan) == pytest.approx(evidence.plane.at(n))
    assert len(found.records) == len(SIZES) * len(n)


def test_before_minus_after_is_that_of_disjoint_ensembles(stores, drawn):
    found = drawn("before-after")
    whole, crossed = (
        each.collections[0].get_array() for each in data_axes(found.figure)
    )
    for k, pool in enumerate(stores["study"].pools):
        both = compare(pool)
        assert whole[k].filled(np.nan) == pytest.approx(1000 * both.difference_whole)
        assert crossed[k].filled(np.nan) == pytest.approx(1000 * both.difference)
        recorded = column(found.records, "cross_validated", size=SIZES[k])
        assert recorded == pytest.approx(both.difference)


def test_the_envelope_is_below_cnll_by_what_choosing_costs(stores, drawn):
    found = drawn("envelope")
    curve = stores["study"].plane.curves[1]
    at = [1, 2, 4, 8]
    cnll, le = (
        curve.cnll_whole[np.isin(curve.n, at)],
        curve.le_nll[np.isin(curve.n, at)],
    )
    recorded = column(found.records, "whole_percent", size=SIZES[1])
    assert recorded == pytest.approx(100 * (cnll - le) / le)
    assert max(column(found.records, "whole_percent")) <= 1e-6


def test_cuts_along_the_size_and_the_budget_are_the_planes(stores, drawn):
    plane, found = stores["study"].plane, drawn("sizes")
    points = column(found.records, "value", score="cnll", n=1)
    assert points == pytest.approx(plane.along_size(1).value, abs=1e-9)
    top = data_axes(found.figure)[0].get_lines()
    assert top[0].get_ydata() == pytest.approx([each.nll[0] for each in plane.curves])
    assert top[1].get_ydata() == pytest.approx(points)
    found = drawn("budgets")
    cut = plane.along_budget()
    assert column(found.records, "cnll", line="envelope") == pytest.approx(cut.value)
    curve = plane.curves[2]
    line = data_axes(found.figure)[0].get_lines()[2]
    assert line.get_xdata() == pytest.approx(SIZES[2] * curve.n)
    assert line.get_ydata() == pytest.approx(curve.cnll)


@pytest.mark.parametrize("kind", ["cnll", "accuracy"])
def test_splits_of_a_budget_are_read_off_the_plane(kind, stores, drawn):
    plane = stores["study"].plane
    found = drawn("splits" if kind == "cnll" else "splits-accuracy")
    records = [each for each in found.records if each["budget"] == SIZES[-1]]
    alone = next(each for each in records if each["n"] == 1)
    expected = getattr(plane.curves[-1], kind)[0]
    assert alone[kind] == pytest.approx(expected)
    pick = max if kind == "accuracy" else min
    best = pick(records, key=lambda each: each[kind])
    assert [each for each in records if each["best"]] == [best]
    lines = data_axes(found.figure)[0].get_lines()
    unit = 100 if kind == "accuracy" else 1
    drawn_values = lines[-2].get_ydata()
    assert drawn_values == pytest.approx([unit * each[kind] for each in records])


def test_errors_of_predictions_are_those_of_the_paper(stores, drawn):
    evidence, found = stores["study"], drawn("errors-of-all")
    curve = evidence.plane.curves[0]
    law = fit([1, 2, 3, 4], curve.cnll[:4], method="paper").law
    for record in found.records:
        if record["size"] == SIZES[0]:
            true = curve.cnll[curve.n == record["n"]][0]
            assert record["error"] == pytest.approx(abs(law(record["n"]) - true))
    assert min(column(found.records, "n")) == 5
    found = drawn("errors-of-six")
    test = evidence.from_six(1)
    for method in ("paper", "robust"):
        recorded = column(found.records, "error", size=SIZES[1], method=method)
        off = np.sqrt(np.mean(test.errors[method] ** 2, axis=0))
        assert recorded == pytest.approx(off)


def test_optimal_splits_are_those_of_the_test(stores, drawn):
    found = drawn("optimal-splits")
    for method in ("paper", "robust"):
        tried = optimal_splits_test(stores["study"].plane, method=method).records()
        for name in ("budget", "true_mean", "predicted_mean"):
            expected = [each[name] for each in tried]
            assert column(found.records, name, method=method) == pytest.approx(expected)


def test_the_table_of_times_is_what_the_networks_said(drawn):
    found = drawn("timing")
    assert column(found.records, "train_seconds") == [16.5, 26.5, 46.5, 86.5]
    assert column(found.records, "epoch_seconds") == [0.825, 1.325, 2.325, 4.325]
    assert column(found.records, "predict_seconds") == [0.5, 1.0, 2.0, 4.0]
    texts = [each.get_text() for each in found.figure.axes[0].texts]
    assert {"16.5", "161k", "4.33"} <= set(texts)


def test_colors_of_sizes_are_ordered_in_gray():
    for count in (2, 5, 12):
        rgb = np.array(style.ramp(count))[:, :3]
        gray = rgb @ [0.299, 0.587, 0.114]
        assert (np.diff(gray) < -0.01).all()
        assert gray.max() < 0.8  # not lost on white


@pytest.fixture(scope="module")
def poor():
    """Gather what lacks something: sizes, networks, logits."""
    family = Family.splits_pay(objects=120)
    few = [family.of(size).predictions(3) for size in SIZES[:2]]
    sketches = [Sketch.of(family.of(size).predictions(6)) for size in SIZES[:2]]
    return {
        "one": evidence_of([World(objects=120).predictions(2)], "one"),
        "few": evidence_of(few, "few"),
        "sketches": evidence_of(sketches, "sketches"),
    }


@pytest.mark.parametrize(
    ("name", "which", "sentence"),
    [
        ("curves", "one", "has 2 networks, too few for a law along n; train at"),
        ("plane", "one", "does not say how many parameters its networks have"),
        ("fixed-temperature", "few", "too few for a law along n"),
        ("calibrated", "few", "too few for a law along n"),
        ("high-temperature", "few", "too few for a law along n"),
        ("temperature-curves", "few", "train at least 4"),
        ("errors-of-all", "few", "train at least 8 of a size"),
        ("errors-of-six", "few", "train at least 12 of a size"),
        ("optimal-splits", "few", "train more networks of the small sizes"),
        ("before-after", "sketches", "needs logits: record these"),
        ("splits-accuracy", "sketches", "accuracy is unknown: record logits"),
        ("unregularized-plane", "sketches", "no store was trained without weight"),
        ("unregularized-laws", "sketches", "no store was trained without weight"),
        ("timing", "sketches", "do not say how long they took"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(name, which, sentence, poor):
    with pytest.raises(InputError, match=re.escape(sentence)):
        draw(name, poor[which])
    ((drawing, of, said),) = draw_each(poor[which], only=[name])
    assert drawing.name == name
    assert of == (None if drawing.together else which)
    assert sentence in said


def test_networks_of_a_study_were_not_recorded_elsewhere(stores):
    with pytest.raises(InputError, match="was made by a study"):
        draw("elsewhere", stores["study"])


def test_sketches_are_drawn_where_they_know_enough(poor):
    found = draw("temperature-curves", poor["sketches"])
    assert set(column(found.records, "apply")) == {"before"}
    assert_readable(found.figure)


def test_a_figure_of_one_store_is_not_drawn_of_two(stores):
    with pytest.raises(InputError, match="give one of them"):
        draw("plane", [stores["study"], stores["recorded"]])


def test_an_unknown_name_lists_the_names(stores):
    with pytest.raises(InputError, match="'timing'; did you mean 'curves'") as caught:
        draw("curve", stores["study"])
    assert all(repr(name) in str(caught.value) for name in DRAWINGS)


def test_files_hold_the_figure_its_data_and_what_it_says(stores, tmp_path):
    written = write_all(
        stores["study"],
        tmp_path / "made" / "here",
        only=["curves", "elsewhere"],
        formats=["pdf", "svg", "png", "svg"],
    )
    curves, elsewhere = written.figures
    assert [path.name for path in curves.files] == [
        *("curves.pdf", "curves.svg", "curves.png")
    ]
    starts = (b"%PDF", b"<?xml", b"\x89PNG")
    for path, start in zip(curves.files, starts, strict=True):
        assert path.read_bytes().startswith(start)
    with curves.data.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    records = draw("curves", stores["study"]).records
    assert len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        assert float(row["value"]) == record["value"]
        assert int(row["n"]) == record["n"]
    assert elsewhere.files == ()
    assert "was made by a study" in elsewhere.skipped
    captions = (tmp_path / "made" / "here" / "captions.md").read_text(encoding="utf-8")
    assert curves.caption in captions
    assert elsewhere.skipped in captions


def test_the_same_store_gives_the_same_bytes(folder):
    one, other = (gather_evidence(folder / "study") for _ in range(2))
    for name, kind in (("curves", "pdf"), ("plane", "svg"), ("timing", "png")):
        made = as_picture(draw(name, one), kind)
        assert made == as_picture(draw(name, other), kind)
        assert not re.search(rb"20[0-9]{2}-[0-9]{2}-[0-9]{2}", made)
    drawn = draw("sizes", one)
    assert len({as_picture(drawn, "svg") for _ in range(3)}) == 1


def test_names_of_stores_make_no_paths(stores, tmp_path):
    hostile = [
        dataclasses.replace(stores["study"], name=name)
        for name in ("../../up", "up", "<script>", "///")
    ]
    written = write_all(hostile, tmp_path / "out", only=["timing"])
    names = sorted(path.name for each in written.figures for path in each.files)
    assert names == [
        "timing-script.png",
        "timing-store.png",
        "timing-up-2.png",
        "timing-up.png",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def run(*arguments):
    return CliRunner().invoke(app, ["figures", *map(str, arguments)])


def test_the_verb_prints_one_object(folder, tmp_path):
    done = run(
        *(folder / "study", folder / "recorded", "-o", tmp_path / "out"),
        *("--only", "curves,calibrated", "--only", "timing", "--json"),
        *("--format", "svg", "--format", "png"),
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["warnings"] == []
    assert said["options"]["only"] == ["curves", "calibrated", "timing"]
    found = {(each["name"], Path(each["file"]).name) for each in said["figures"]}
    assert found == {
        (name, f"{stem}.{kind}")
        for kind in ("svg", "png")
        for name, stem in (
            ("curves", "curves-study"),
            ("curves", "curves-recorded"),
            ("calibrated", "calibrated"),
            ("timing", "timing-study"),
        )
    }
    assert all(Path(each["file"]).is_file() for each in said["figures"])
    assert all(Path(each["data"]).is_file() for each in said["figures"])
    (skipped,) = said["skipped"]
    assert (skipped["name"], skipped["store"]) == ("timing", "recorded")


def test_the_verb_says_what_it_drew_and_what_not(folder, tmp_path):
    done = run(
        *(folder / "recorded", "-o", tmp_path, "--only", "curves,plane"),
    )
    assert done.exit_code == 0, done.output
    assert "curves.png" in done.stdout
    assert "plane of recorded is skipped" in done.stdout


def test_mistakes_are_sentences_and_leave_nothing(folder, tmp_path):
    (tmp_path / "file").write_text("")
    Store(tmp_path / "empty").path.joinpath("pools").mkdir(parents=True)
    out = tmp_path / "out"
    for arguments, sentence in (
        ((folder / "study", "-o", tmp_path / "file"), "is a file; name the folder"),
        ((folder / "study", "-o", out, "--only", "curvs"), "did you mean 'curves'"),
        ((tmp_path / "nowhere", "-o", out), "does not exist"),
        ((tmp_path / "empty", "-o", out), "holds no networks yet"),
    ):
        done = run(*arguments)
        assert isinstance(done.exception, InputError), done.output
        assert sentence in str(done.exception)
    assert not any(out.glob("*"))


def test_a_folder_that_cannot_be_written_is_named(folder, tmp_path):
    (tmp_path / "file").write_text("")
    done = run(folder / "study", "-o", tmp_path / "file" / "below")
    assert isinstance(done.exception, InputError)
    assert str(tmp_path / "file" / "below") in str(done.exception)


def test_without_matplotlib_the_verb_says_what_to_install(
    folder, tmp_path, monkeypatch
):
    for name in [each for each in sys.modules if each.startswith("ensize.figures")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run(folder / "study", "-o", tmp_path / "out")
    assert isinstance(done.exception, InputError)
    assert 'pip install "ensize[figures]"' in str(done.exception)


def test_the_page_of_figures_names_each_with_its_place_in_the_paper():
    page = Path(__file__).parents[1] / "docs" / "figures.md"
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (.+?) \| (.+?) \|",
        page.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    listed = [(each.name, each.title, each.paper) for each in DRAWINGS.values()]
    assert rows == listed


def test_a_plane_in_memory_is_drawn_without_a_store():
    family = Family.splits_pay(objects=120)
    pools = [family.of(size).predictions(4) for size in SIZES[:2]]
    found = draw("plane", evidence_of(pools, "memory"))
    values = column(found.records, "cnll", n=4)
    assert values == pytest.approx(plane_of(pools).at(4))


def test_a_reader_is_told_of_networks_that_were_left_out(tmp_path):
    """An album and its verb say it, without a remedy that they do not have."""
    logits, targets = make_pool(6, 80, 3)
    logits[4] = 5 * np.random.default_rng(0).normal(size=logits[4].shape)
    store = Store(tmp_path / "mine")
    for seed in range(6):
        store.add("pool", seed, logits[seed], targets)
    done = run(tmp_path / "mine", "-o", tmp_path / "out", "--only", "curves")
    assert done.exit_code == 0, done.output
    assert "mine: 1 of 6 networks" in done.stderr.replace("\n", " ")
    assert "pool/4" in done.stderr
    assert "--keep-odd" not in done.output
